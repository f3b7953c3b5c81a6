"""The demo's view."""

import pytest
from rich.console import Console

from local_stack.demo_board import Board, Line, batch_line, draw
from local_stack.demo_lines import ORDERS
from statecast.query.v1.query_pb2 import Replica, Shard

NOW = 1_800_000_000.0
REPLICAS = (Replica(instance="query-2", rank=1, serving=True, lag_records=7), Replica(instance="query-1"))
SHARD = Shard(store="orders-by-key", partition=3, replicas=REPLICAS)


def line(order_id: str = "order-1", committed_s: float = NOW) -> Line:
    cells = (order_id, "customer-1", "Paid", "2027-01-20", "TRACK-1")
    return Line(order_id, cells, f"{order_id} Paid", "alice", committed_s)


def changed(order_id: str, now: float, age_s: float = 0.05) -> Board:
    board = Board(ORDERS)
    change(board, order_id, now, age_s)
    return board


def change(board: Board, order_id: str, now: float, age_s: float = 0.05) -> None:
    board.apply(line(order_id, committed_s=0), 1)
    board.apply(line(order_id, committed_s=now - age_s), now)


def drawn(board: Board) -> str:
    console = Console(width=140)
    with console.capture() as capture:
        console.print(draw(board, "wss://gateway", 12, NOW, 40))
    return capture.get()


def test_ages_run_from_the_commit_to_the_client() -> None:
    board = Board(ORDERS)
    for place, age_s in enumerate((0.05, 0.1, 0.3)):
        change(board, "order-1", NOW + place, age_s)

    assert board.ages() == ("100 ms", "300 ms")
    assert board.lines["order-1"].changes == 3


def test_what_was_committed_before_anyone_watched_has_no_age() -> None:
    board = Board(ORDERS, since_s=NOW)
    change(board, "order-1", NOW + 1, age_s=20)
    assert board.ages() == ("-", "-")
    assert board.lines["order-1"].committed_s == NOW + 1 - 20

    change(board, "order-1", NOW + 2)
    assert board.ages() == ("50 ms", "50 ms")


def test_a_snapshot_is_shown_and_is_no_change() -> None:
    board = Board(ORDERS)

    board.apply(line(committed_s=NOW - 3600), NOW)

    assert board.lines["order-1"].changes == 0
    assert (board.updates, board.ages()) == (0, ("-", "-"))


def test_a_change_that_is_told_again_counts_once() -> None:
    board = changed("order-1", NOW)

    board.apply(line(committed_s=NOW - 0.05), NOW + 1)

    assert board.lines["order-1"].changes == 1


def test_the_newest_changes_come_first() -> None:
    board = Board(ORDERS)
    for place, order_id in enumerate(("a", "b", "a", "c")):
        change(board, order_id, NOW + place)

    assert [each.name for each in board.latest(2)] == ["c", "a"]
    assert [each.name for each in board.changed_after(NOW + 1)] == ["a", "c"]


def test_the_rate_counts_the_last_five_seconds() -> None:
    board = Board(ORDERS)
    for second in range(20):
        change(board, "order-1", NOW + second)

    assert board.rate(NOW + 19) == pytest.approx(6 / 5)
    assert board.rate(NOW + 60) == 0


def test_a_line_names_some_orders_and_counts_the_others() -> None:
    board = Board(ORDERS)
    for number in range(5):
        change(board, f"order-{number}", NOW + number)

    text = batch_line("orders", board.changed_after(NOW - 1), NOW + 5)

    assert "5 orders changed" in text
    assert "order-2 Paid, order-3 Paid, order-4 Paid and 2 more" in text


def test_it_shows_orders_ages_and_owners() -> None:
    board = changed("order-1", NOW, 0.042)
    board.shards = (SHARD,)

    text = drawn(board)

    for shown in ("order-1", "customer-1", "Paid", "2027-01-20", "TRACK-1", "alice", "42 ms", "query-2, query-1  +7"):
        assert shown in text
    assert "shard 3: owner, replica" in text
    assert "12 s left" in text


def test_it_shows_a_problem_instead_of_the_time_left() -> None:
    text = drawn(Board(ORDERS, problem="alice: connection refused"))

    assert "alice: connection refused" in text
    assert "s left" not in text
