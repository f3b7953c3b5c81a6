"""What the demo knows."""

from datetime import UTC, datetime

import pytest

from local_stack.demo_board import Board, OrderUpdate, read_shards, read_update

NOW = 1_800_000_000.0
FRAME = {
    "type": "order_status_update",
    "data": {"order_id": "order-1", "status": "Paid", "estimated_delivery": "2027-01-20", "tracking_number": ""},
    "position": {"epoch": "1", "offset": "2"},
    "commit_time": "2027-01-15T08:00:00.250Z",
}


def update(order_id: str = "order-1", *, age_s: float = 0.0, now: float = NOW, snapshot: bool = False) -> OrderUpdate:
    return OrderUpdate(order_id, "Paid", "", "", datetime.fromtimestamp(now - age_s, UTC), snapshot)


def test_a_frame_is_read() -> None:
    read = read_update(FRAME, snapshot=False)

    assert (read.order_id, read.status, read.estimated_delivery) == ("order-1", "Paid", "2027-01-20")
    assert read.committed == datetime(2027, 1, 15, 8, 0, 0, 250_000, UTC)


def test_an_order_that_was_never_seen_has_no_commit_time() -> None:
    frame = {"data": {"order_id": "order-1", "status": "Unknown"}, "position": {}}

    assert read_update(frame, snapshot=True).committed is None


def test_ages_run_from_the_commit_to_the_client() -> None:
    board = Board()
    for age_s in (0.05, 0.1, 0.3):
        board.apply(update(age_s=age_s), "customer-1", "alice", NOW)

    assert board.median_age_s == pytest.approx(0.1, abs=1e-5)
    assert board.highest_age_s == pytest.approx(0.3, abs=1e-5)
    assert board.lines["order-1"].changes == 3


def test_a_snapshot_is_shown_and_is_no_change() -> None:
    board = Board()

    board.apply(update(age_s=3600, snapshot=True), "customer-1", "alice", NOW)

    assert board.lines["order-1"].changes == 0
    assert (board.updates, board.median_age_s) == (0, None)


def test_the_newest_changes_come_first() -> None:
    board = Board()
    for place, order_id in enumerate(("a", "b", "a", "c")):
        board.apply(update(order_id), "customer-1", "alice", NOW + place)

    assert [line.update.order_id for line in board.latest(2)] == ["c", "a"]
    assert [line.update.order_id for line in board.changed_since(NOW + 1)] == ["a", "c"]


def test_the_rate_counts_the_last_five_seconds() -> None:
    board = Board()
    for second in range(20):
        board.apply(update(now=NOW + second), "customer-1", "alice", NOW + second)

    assert board.rate(NOW + 19) == pytest.approx(6 / 5)
    assert board.rate(NOW + 60) == 0


def test_the_shard_map_is_read() -> None:
    replicas = [{"instance": "query-2", "rank": 1, "serving": True, "lag_records": "4"}, {"instance": "query-1"}]

    (shard,) = read_shards({"shards": [{"store": "orders-by-key", "partition": 3, "replicas": replicas}]})

    assert (shard.store, shard.partition, shard.lag_records) == ("orders-by-key", 3, 4)
    assert shard.instances == ("query-2", "query-1")
    assert shard.serving == (True, False)
