"""The computations of the comparison with the peer, without either system."""

import json
from collections.abc import Callable

import pytest

from bench.peer import in_turn
from bench.peer_load import BATCH_KEYS, Report, batch_requests, report_of, saturate
from bench.peer_restore import restored_per_s
from bench.peer_rows import change, keyed_record, order, version_of
from statecast.orders.v1.order_pb2 import OrderChange
from statecast.state.v1.state_pb2 import StateRecord


def test_rounds_alternate_who_is_first_and_keep_each_run() -> None:
    order_of_calls: list[str] = []

    def measured(name: str) -> Callable[[], dict[str, float]]:
        def measure() -> dict[str, float]:
            order_of_calls.append(name)
            return {"gets_per_s.owner": len(order_of_calls)}

        return measure

    metrics = in_turn({"peer": measured("peer"), "ours": measured("ours")}, 2)

    assert order_of_calls == ["peer", "ours", "ours", "peer"]
    assert {metric.metric: metric.runs for metric in metrics} == {
        "peer.gets_per_s.owner": [1, 4],
        "ours.gets_per_s.owner": [2, 3],
    }


def report(**statuses: int) -> str:
    latencies = [{"percentage": 50, "latency": 760_000}, {"percentage": 99, "latency": 3_000_000}]
    return json.dumps({"count": 80, "rps": 10.5, "statusCodeDistribution": statuses, "latencyDistribution": latencies})


def test_the_report_of_ghz_is_read() -> None:
    assert report_of(report(OK=80)) == Report(calls=80, per_s=10.5, p50_ms=0.76)


def test_a_load_with_calls_that_failed_counts_for_nothing() -> None:
    with pytest.raises(RuntimeError, match="'Unavailable': 2"):
        report_of(report(OK=78, Unavailable=2))


def test_the_peers_rows_a_second_span_all_partitions() -> None:
    log = "restored 0 1000 1400 100\nWARN noise\nrestored 1 1100 2000 300\n"

    assert restored_per_s(log, partitions=2) == 400


def test_a_restore_that_left_out_a_partition_has_no_rate() -> None:
    with pytest.raises(ValueError, match="1 of 2 partitions"):
        restored_per_s("restored 0 1000 1400 100\n", partitions=2)


def test_batches_hold_all_keys_in_order_but_those_that_do_not_fill_one() -> None:
    keys = [f"key-{number}" for number in range(2 * BATCH_KEYS + 3)]

    requests = batch_requests(keys)

    assert [query.key.group for request in requests for query in request.keys] == keys[: 2 * BATCH_KEYS]


async def test_calls_that_are_done_are_counted_and_their_rate() -> None:
    calls: list[None] = []

    async def call() -> None:
        calls.append(None)

    per_s, done = await saturate(call, in_flight=3, seconds=0.01)

    assert done == len(calls)
    assert per_s > 0


def test_a_row_has_the_size_that_is_published_and_tells_its_version() -> None:
    payload = order(1_234, 5).SerializeToString()

    assert len(payload) == 178
    assert version_of(payload) == 5


def test_the_record_and_the_change_of_a_version_bring_the_same_row() -> None:
    record, changed = StateRecord.FromString(keyed_record(7, 3)), OrderChange.FromString(change(7, 3))

    assert record.payload == changed.after.SerializeToString()
    assert version_of(changed.before.SerializeToString()) == 2
    assert record.sequence == changed.source.log_sequence_number == 3


def test_the_first_version_of_a_row_is_its_creation() -> None:
    assert not OrderChange.FromString(change(7, 1)).HasField("before")
