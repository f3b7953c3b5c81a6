"""One suite of ranges in batches for every kind of lookup: local, remote, and routed by way of a peer."""

import asyncio
import time

import pytest
from google.protobuf.duration_pb2 import Duration

from query_service.cluster.view import View
from query_service.reads import ranges as ranges_module
from statecast.partitioning import partition_of
from statecast.query.v1 import query_pb2
from statecast.query.v1 import query_service_pb2 as query
from statecast.state.v1 import state_pb2
from testkit.query_service import MessageReads, apply_row, soon, tombstone
from testkit.query_service import put as state_put
from testkit.waiting import wait_until_async

STORE = "orders-by-key"
EPOCH = 77
RESOURCE_EXHAUSTED = 8
MOVES = 10_001
RECENT = 8
"""The number of changed rows that the replicas of these tests remember."""


def range_query(group: str = "alice", after: int | None = None, **fields: object) -> query_pb2.RangeQuery:
    message = query_pb2.RangeQuery(group=group, **fields)  # type: ignore[arg-type]
    if after is not None:
        message.after.CopyFrom(state_pb2.Position(epoch=EPOCH, offset=after))
    return message


def batch(*ranges: query_pb2.RangeQuery, wait: int = 0) -> query.BatchGetStatesRequest:
    request = query.BatchGetStatesRequest(store=STORE, ranges=ranges)
    if wait:
        request.max_wait.CopyFrom(Duration(seconds=wait))
    return request


def put(view: View, offset: int, name: str, payload: bytes | None = b"row", group: str = "alice") -> None:
    """Applies a row at an offset; `name` is its sort value and its member."""
    apply_row(view, STORE, f"{group}\0{name}\0{name}", offset, offset, payload)


def members(result: query_pb2.RangeResult) -> list[tuple[str, int]]:
    return [(state.key.member, state.position.offset) for state in result.states]


def removed(result: query_pb2.RangeResult) -> list[tuple[str, int]]:
    return [(each.key.member, each.absence.position.offset) for each in result.removals]


async def one(lookup: MessageReads, range_: query_pb2.RangeQuery) -> query_pb2.RangeResult:
    (result,) = (await lookup.batch(batch(range_), soon())).ranges
    return result


async def test_a_range_that_is_new_to_the_caller_is_answered_whole(lookup: MessageReads, serving_view: View) -> None:
    for offset, name in enumerate("bac"):
        put(serving_view, offset, name)
    put(serving_view, 3, "b", None)
    result = await one(lookup, range_query())

    assert members(result) == [("a", 1), ("c", 2)]
    assert result.whole
    assert not result.more
    assert result.position == state_pb2.Position(epoch=EPOCH, offset=3)
    assert (result.removals_complete, removed(result)) == (False, [])


async def test_a_whole_answer_has_the_first_or_the_last_within_the_limit(
    lookup: MessageReads, serving_view: View
) -> None:
    for offset, name in enumerate("abcde"):
        put(serving_view, offset, name)

    first = await one(lookup, range_query(limit=3))
    assert (members(first), first.more) == ([("a", 0), ("b", 1), ("c", 2)], True)
    last = await one(lookup, range_query(limit=3, reverse=True))
    assert (members(last), last.more) == ([("e", 4), ("d", 3), ("c", 2)], True)
    part = await one(lookup, range_query(limit=3, sort_from="b", sort_to="d"))
    assert (members(part), part.more) == ([("b", 1), ("c", 2)], False)


async def test_a_range_in_which_nothing_changed_is_left_out(lookup: MessageReads, serving_view: View) -> None:
    put(serving_view, 0, "a")
    put(serving_view, 1, "z")
    answer = await lookup.batch(batch(range_query(after=1), range_query(after=0, sort_to="m")), soon())

    assert not answer.ranges
    assert [each.partition for each in answer.freshness] == [partition_of("alice", 4)]


async def test_only_what_changed_since_is_told_with_what_was_removed(lookup: MessageReads, serving_view: View) -> None:
    for offset, name in enumerate("abc"):
        put(serving_view, offset, name)
    put(serving_view, 3, "a", b"newer")
    put(serving_view, 4, "b", None)
    put(serving_view, 5, "d")
    result = await one(lookup, range_query(after=2, limit=10))

    assert members(result) == [("a", 3), ("d", 5)]
    assert removed(result) == [("b", 4)]
    assert (result.whole, result.removals_complete, result.position.offset) == (False, True, 5)


async def test_what_is_no_longer_in_memory_is_found_in_the_store(lookup: MessageReads, serving_view: View) -> None:
    for offset, name in enumerate("abcdefghijkl"):
        put(serving_view, offset, name)
    put(serving_view, 12, "b", None)
    result = await one(lookup, range_query(after=1, limit=12))

    assert [member for member, _ in members(result)] == list("cdefghijkl")
    assert removed(result) == [("b", 12)]
    assert (result.whole, result.removals_complete) == (False, True)
    assert serving_view.replicas[STORE, partition_of("alice", 4)].changes.changed_after(b"alice", 1) is None


async def test_a_caller_from_before_the_deletions_that_are_known_gets_all(
    lookup: MessageReads, serving_view: View
) -> None:
    for offset, name in enumerate("abcdefghijkl"):
        put(serving_view, offset, name)
    put(serving_view, 12, "b", None)
    put(serving_view, 13, "c")
    for replica in serving_view.replicas.values():
        replica.store.purge_deletions(2**62, 10)
    result = await one(lookup, range_query(after=1, limit=20))

    assert (result.whole, result.removals_complete) == (True, False)
    assert len(result.states) == 11


async def test_more_changes_than_the_limit_are_answered_whole(lookup: MessageReads, serving_view: View) -> None:
    for offset, name in enumerate("abc"):
        put(serving_view, offset, name)
    result = await one(lookup, range_query(after=-1, limit=2))

    assert (result.whole, result.more, len(result.states)) == (True, True, 2)


async def test_whoever_asks_for_all_is_also_told_what_was_removed(lookup: MessageReads, serving_view: View) -> None:
    for offset, name in enumerate("ab"):
        put(serving_view, offset, name)
    put(serving_view, 2, "a", None)
    result = await one(lookup, range_query(after=1, whole=True))

    assert (members(result), removed(result)) == ([("b", 1)], [("a", 2)])
    assert (result.whole, result.removals_complete) == (True, True)


async def test_a_deletion_that_is_no_longer_remembered_is_told_as_of_the_answer(
    lookup: MessageReads, serving_view: View
) -> None:
    put(serving_view, 0, "a")
    put(serving_view, 1, "a", None)
    put(serving_view, 2, "b")
    for replica in serving_view.replicas.values():
        replica.store.purge_deletions(2**62, 10)
    result = await one(lookup, range_query(after=0))

    assert removed(result) == [("a", 2)]
    assert not result.removals[0].absence.deleted


async def test_a_position_of_another_epoch_is_answered_whole(lookup: MessageReads, serving_view: View) -> None:
    put(serving_view, 0, "a")
    range_ = range_query()
    range_.after.CopyFrom(state_pb2.Position(epoch=1, offset=99))

    assert (await one(lookup, range_)).whole


async def test_a_long_poll_wakes_on_the_first_change_in_the_range_and_on_no_other(
    lookup: MessageReads, serving_view: View
) -> None:
    put(serving_view, 0, "a")
    request = batch(range_query(after=0, sort_to="m"), wait=5)
    replica = serving_view.replicas[STORE, partition_of("alice", 4)]
    waiting = asyncio.create_task(lookup.batch(request, time.monotonic() + 10))
    await wait_until_async(lambda: replica.changes.is_watched, "the call does not wait")
    put(serving_view, 1, "z")
    await asyncio.sleep(0.05)

    assert not waiting.done()
    put(serving_view, 2, "b")
    (result,) = (await waiting).ranges
    assert members(result) == [("b", 2)]


async def test_keys_and_ranges_of_many_groups_go_in_one_batch(lookup: MessageReads, serving_view: View) -> None:
    groups = [f"customer-{number}" for number in range(8)]
    for group in groups:
        put(serving_view, 0, "a", group=group)
    request = batch(*(range_query(group) for group in groups))
    request.keys.add(key=state_pb2.StateKey(group=groups[0], sort="a", member="a"))
    answer = await lookup.batch(request, soon())

    assert {groups[each.index]: each.states[0].key.group for each in answer.ranges} == {g: g for g in groups}
    assert answer.results[0].state.key.member == "a"


async def test_each_freshness_names_the_keys_and_ranges_that_were_read_from_its_partition(
    lookup: MessageReads, serving_view: View
) -> None:
    """Also those that are left out of the answer: a client that polls a range goes on from there."""
    groups = [f"customer-{number}" for number in range(8)]
    for group in groups:
        put(serving_view, 0, "a", group=group)
    request = batch(*(range_query(group, after=0) for group in groups))
    for group in groups[:3]:
        query_ = request.keys.add(key=state_pb2.StateKey(group=group, sort="a", member="a"))
        query_.after.CopyFrom(state_pb2.Position(epoch=EPOCH, offset=0))
    answer = await lookup.batch(request, soon())

    assert not answer.results
    assert not answer.ranges
    for names, named in ((groups, "ranges"), (groups[:3], "keys")):
        partitions = {place: each.partition for each in answer.freshness for place in getattr(each, named)}
        assert partitions == {place: partition_of(group, 4) for place, group in enumerate(names)}


async def test_a_member_that_moved_very_often_is_read_like_any_other(lookup: MessageReads, serving_view: View) -> None:
    replica = serving_view.replicas[STORE, partition_of("alice", 4)]
    sorts = [f"{number:08d}" for number in range(MOVES + 1)]
    moves = [tombstone(f"alice\0{sort}\0m", number, 2 * number) for number, sort in enumerate(sorts[:-1], 1)]
    moves += [state_put(f"alice\0{sort}\0m", number, 2 * number + 1) for number, sort in enumerate(sorts)]
    moves.sort(key=lambda record: record.offset())
    replica.apply(moves, 2 * MOVES + 2)

    whole = await one(lookup, range_query(limit=9))
    assert (members(whole), whole.more) == ([("m", 2 * MOVES + 1)], False)
    resumed = await one(lookup, range_query(limit=9, after=2 * MOVES - 1))
    assert members(resumed) == [("m", 2 * MOVES + 1)]
    long_ago = await one(lookup, range_query(limit=9, after=3))
    assert (members(long_ago), long_ago.whole) == ([("m", 2 * MOVES + 1)], True)


async def test_ranges_that_would_hold_up_all_others_fail_by_themselves(
    lookup: MessageReads, serving_view: View, monkeypatch: pytest.MonkeyPatch
) -> None:
    for offset, name in enumerate("abcd"):
        put(serving_view, offset, name)
    monkeypatch.setattr(ranges_module, "_MAX_VISITS", 3)
    answer = await lookup.batch(batch(range_query(limit=9, sort_from="c"), range_query(limit=9, sort_from="b")), soon())
    assert [each.error.code for each in sorted(answer.ranges, key=lambda each: each.index)] == [0, RESOURCE_EXHAUSTED]


async def test_changes_outside_of_a_range_count_too_so_that_many_ranges_do_not_hold_the_loop(
    lookup: MessageReads, serving_view: View, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ranges_module, "_MAX_VISITS", 10)
    monkeypatch.setattr(ranges_module, "_CHANGES_A_VISIT", 1)
    for offset, name in enumerate("abcdef"):
        put(serving_view, offset, name)
    answer = await lookup.batch(batch(*[range_query(after=0, sort_from="x") for _ in range(4)]), soon())

    assert [(each.index, each.error.code) for each in answer.ranges] == [
        (2, RESOURCE_EXHAUSTED),
        (3, RESOURCE_EXHAUSTED),
    ]
