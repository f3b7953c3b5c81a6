"""One suite of keys and batches for every kind of lookup: local, remote, and routed by way of a peer."""

import asyncio
import time
from contextlib import suppress

import pytest
from google.protobuf.duration_pb2 import Duration

from query_service.cluster.view import View
from query_service.errors import AbsentError, BoundsError, NotServedError
from query_service.reads import batch as batch_module
from query_service.reads import ranges as ranges_module
from query_service.reads import wire
from query_service.storage.engine import MemoryEngine
from query_service.storage.progress import Progress
from query_service.storage.store import PartitionStore
from statecast.partitioning import partition_of
from statecast.query.v1 import query_pb2
from statecast.query.v1 import query_service_pb2 as query
from statecast.state.v1 import state_pb2
from testkit.query_service import ManualClock, MessageReads, apply_row, put, soon
from testkit.waiting import wait_until_async

STORE = "orders-by-key"
EPOCH = 77
RESOURCE_EXHAUSTED = 8
FAILED_PRECONDITION = 9
ANSWER_BYTES = 500_000
"""The largest answer of these lookups."""


def get(group: str, **bounds: object) -> query.GetStateRequest:
    request = query.GetStateRequest(store=STORE, key=state_pb2.StateKey(group=group))
    if bounds:
        request.bounds.CopyFrom(query_pb2.Bounds(**bounds))  # type: ignore[arg-type]
    return request


def batch(*keys: tuple[str, int | None], wait: float = 0) -> query.BatchGetStatesRequest:
    """Returns a batch of groups, each with the offset that the caller already has."""
    request = query.BatchGetStatesRequest(store=STORE)
    for group, after in keys:
        each = request.keys.add(key=state_pb2.StateKey(group=group))
        if after is not None:
            each.after.CopyFrom(state_pb2.Position(epoch=EPOCH, offset=after))
    if wait:
        request.max_wait.CopyFrom(Duration(nanos=int(wait * 1e9) % 10**9, seconds=int(wait)))
    return request


async def test_a_get_answers_value_position_and_freshness(lookup: MessageReads, serving_view: View) -> None:
    apply_row(serving_view, STORE, "order-1", 1, 5, b"row")
    answer = await lookup.get(get("order-1"), soon())

    assert answer.state.key.group == "order-1"
    assert answer.state.payload == b"row"
    assert answer.state.position == state_pb2.Position(epoch=EPOCH, offset=5)
    assert answer.state.commit_time.seconds == 1_700_000_000
    assert answer.freshness.partition == partition_of("order-1", 4)
    assert answer.freshness.current_through.offset == 5
    assert answer.freshness.answered_by == "query-1"


async def test_a_missing_key_is_absent_as_of_the_last_record(lookup: MessageReads, serving_view: View) -> None:
    with pytest.raises(AbsentError) as absent:
        await lookup.get(get("order-1"), soon())

    assert not absent.value.absence.deleted
    assert absent.value.absence.position == state_pb2.Position(epoch=EPOCH, offset=-1)
    assert absent.value.freshness.answered_by == "query-1"


async def test_a_deleted_key_is_absent_since_its_deletion(lookup: MessageReads, serving_view: View) -> None:
    apply_row(serving_view, STORE, "order-1", 1, 5, b"row")
    apply_row(serving_view, STORE, "order-1", 2, 6, None)
    with pytest.raises(AbsentError) as absent:
        await lookup.get(get("order-1"), soon())

    assert absent.value.absence.deleted
    assert absent.value.absence.position.offset == 6


async def test_a_get_that_must_be_fresher_waits_for_it(lookup: MessageReads, serving_view: View) -> None:
    bound = state_pb2.Position(epoch=EPOCH, offset=5)
    replica = serving_view.replicas[STORE, partition_of("order-1", 4)]
    waiting = asyncio.create_task(lookup.get(get("order-1", at_least=bound), soon()))
    await wait_until_async(lambda: replica.changes.is_watched, "the call does not wait")
    apply_row(serving_view, STORE, "order-1", 1, 5, b"row")

    assert (await waiting).state.payload == b"row"


async def test_a_get_that_cannot_be_fresh_enough_fails_at_the_deadline(lookup: MessageReads) -> None:
    bound = state_pb2.Position(epoch=EPOCH, offset=5)

    with pytest.raises(BoundsError, match="applied through offset -1, not 5"):
        await lookup.get(get("order-1", at_least=bound), time.monotonic() + 1)


async def test_a_batch_answers_what_is_newer_and_leaves_out_the_rest(lookup: MessageReads, serving_view: View) -> None:
    apply_row(serving_view, STORE, "changed", 1, 5, b"row")
    apply_row(serving_view, STORE, "same", 1, 5, b"row")
    apply_row(serving_view, STORE, "gone", 1, 5, None)
    answer = await lookup.batch(batch(("changed", 4), ("same", 5), ("gone", 4), ("never", None)), soon())
    results = {result.index: result for result in answer.results}

    assert sorted(results) == [0, 2, 3]
    assert results[0].state.payload == b"row"
    assert results[2].absence.deleted
    assert results[2].absence.position.offset == 5
    assert not results[3].absence.deleted
    assert {each.answered_by for each in answer.freshness} == {"query-1"}
    assert [each.partition for each in answer.freshness] == sorted(
        {partition_of(group, 4) for group in ("changed", "same", "gone", "never")}
    )


async def test_an_absence_that_the_caller_knows_is_left_out(lookup: MessageReads, serving_view: View) -> None:
    apply_row(serving_view, STORE, "gone", 1, 5, None)

    assert not (await lookup.batch(batch(("gone", 5), ("never", -1)), soon())).results


async def test_a_deletion_that_is_no_longer_remembered_is_told_once_more(
    lookup: MessageReads, serving_view: View
) -> None:
    apply_row(serving_view, STORE, "gone", 1, 5, None)
    for host in serving_view.replicas.values():
        host.store.purge_deletions(2**62, 10)
    answer = await lookup.batch(batch(("gone", 4)), soon())

    assert not answer.results[0].absence.deleted
    assert answer.results[0].absence.position.offset == 5
    assert not (await lookup.batch(batch(("gone", 5)), soon())).results


async def test_a_position_of_another_epoch_always_answers(lookup: MessageReads, serving_view: View) -> None:
    apply_row(serving_view, STORE, "order-1", 1, 5, b"row")
    request = batch(("order-1", None), ("never", None))
    for each in request.keys:
        each.after.CopyFrom(state_pb2.Position(epoch=1, offset=2**40))

    assert len((await lookup.batch(request, soon())).results) == 2


async def test_a_large_batch_answers_each_key_by_its_index(lookup: MessageReads, serving_view: View) -> None:
    groups = [f"order-{number}" for number in range(100)]
    for number, group in enumerate(groups):
        apply_row(serving_view, STORE, group, 1, number, group.encode())
    answer = await lookup.batch(batch(*((group, None) for group in groups)), soon())

    assert {result.index: result.state.payload for result in answer.results} == {
        number: group.encode() for number, group in enumerate(groups)
    }


async def test_a_long_poll_wakes_on_the_first_change(lookup: MessageReads, serving_view: View) -> None:
    groups = [(f"order-{number}", -1) for number in range(8)]
    waiting = asyncio.create_task(lookup.batch(batch(*groups, wait=9), soon()))
    await until_watched(serving_view, watched=True)
    apply_row(serving_view, STORE, "somebody-else", 1, 0, b"row")
    apply_row(serving_view, STORE, "order-3", 1, 1, b"row")
    answer = await asyncio.wait_for(waiting, 5)

    assert [(result.index, result.state.payload) for result in answer.results] == [(3, b"row")]
    assert [each.partition for each in answer.freshness] == [0, 1, 2, 3]
    await until_watched(serving_view, watched=False)


async def until_watched(view: View, *, watched: bool) -> None:
    """Waits until calls wait for changes in all partitions, or in none."""
    await wait_until_async(
        lambda: {replica.changes.is_watched for replica in view.replicas.values()} == {watched},
        f"the partitions are not {'' if watched else 'un'}watched",
    )


async def test_news_at_the_first_look_ends_a_long_poll_at_once(lookup: MessageReads, serving_view: View) -> None:
    apply_row(serving_view, STORE, "order-3", 1, 1, b"row")
    groups = [(f"order-{number}", -1) for number in range(8)]
    answer = await asyncio.wait_for(lookup.batch(batch(*groups, wait=9), soon()), 5)

    assert [(result.index, result.state.payload) for result in answer.results] == [(3, b"row")]


async def test_a_long_poll_without_keys_ends_at_once(lookup: MessageReads) -> None:
    answer = await asyncio.wait_for(lookup.batch(batch(wait=9), soon()), 5)

    assert answer == query.BatchGetStatesResponse()


async def test_a_long_poll_in_which_nothing_changes_ends_empty(lookup: MessageReads) -> None:
    answer = await lookup.batch(batch(("order-1", -1), ("order-2", -1), wait=0.1), soon())

    assert not answer.results
    assert answer.freshness


@pytest.mark.parametrize("has_news", [False, True])
async def test_a_long_poll_answers_nothing_once_its_replica_has_fallen_behind_the_bounds(
    lookup: MessageReads, serving_view: View, clock: ManualClock, *, has_news: bool
) -> None:
    """It stands still for a minute while the call waits, and may then apply the first of what has come meanwhile."""
    replica = serving_view.replicas[STORE, partition_of("order-1", 4)]
    request = batch(("order-1", -1), wait=0.5)
    request.bounds.max_lag_ms = 1000
    waiting = asyncio.create_task(lookup.batch(request, time.monotonic() + 1))
    await wait_until_async(lambda: replica.changes.is_watched, "the call does not wait")
    clock.now += 60
    if has_news:
        replica.apply([put("order-1", 1, 5)], 6)

    with suppress(BoundsError):
        assert [result.error.code for result in (await waiting).results] == [FAILED_PRECONDITION]


async def test_a_long_poll_across_a_reset_of_the_store_tells_no_absence(
    lookup: MessageReads, serving_view: View
) -> None:
    """A topic that has lost the next record makes a replica start over, with an empty store, while calls wait."""
    apply_row(serving_view, STORE, "order-1", 1, 5, b"row")
    waiting = asyncio.create_task(lookup.batch(batch(("order-1", 5), wait=5), soon()))
    replica = serving_view.replicas[STORE, partition_of("order-1", 4)]
    await wait_until_async(lambda: replica.changes.is_watched, "the call does not wait")
    empty = PartitionStore(MemoryEngine(), replica.definition)
    empty.note_purged(99)
    replica.start_over(empty, Progress(0, 2.0, time.monotonic))
    replica.apply([put("order-1", 1, 5)], 6)

    with suppress(NotServedError):
        assert [result.error.code for result in (await waiting).results] == [14]


@pytest.mark.parametrize("ranges", [False, True])
async def test_a_batch_stops_reading_at_the_largest_answer(
    lookup: MessageReads, serving_view: View, monkeypatch: pytest.MonkeyPatch, *, ranges: bool
) -> None:
    """However large the values are, a batch takes no more memory than the answer that is sent."""
    monkeypatch.setattr(batch_module, "_KEYS_AT_ONCE", 4)
    read: list[int] = []
    encode = wire.state_bytes

    def counted(key: bytes, epoch: bytes, header: tuple[int, ...], value: bytes) -> bytes:
        read.append(len(value))
        return encode(key, epoch, header, value)

    for module in (batch_module, ranges_module):
        monkeypatch.setattr(module, "state_bytes", counted)
    for number in range(60):
        apply_row(serving_view, STORE, f"g\0{number:02}\0m", number + 1, number, b"x" * 20_000)
    every = [state_pb2.StateKey(group="g", sort=f"{number:02}", member="m") for number in range(60)]
    request = query.BatchGetStatesRequest(store=STORE)
    if ranges:
        request.ranges.extend([query_pb2.RangeQuery(group="g", limit=60)] * 2)
    else:
        request.keys.extend([query_pb2.KeyQuery(key=key) for key in every])
    answer = await lookup.batch(request, soon())
    results = answer.ranges if ranges else answer.results
    failed = [each.index for each in results if each.error.code == RESOURCE_EXHAUSTED]

    assert sum(read) < (2 * ANSWER_BYTES if ranges else ANSWER_BYTES + 5 * 20_000)
    assert failed == ([0, 1] if ranges else list(range(len(every) - len(failed), len(every))))
    assert ranges or len(failed) < len(every)
