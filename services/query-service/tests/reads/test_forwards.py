"""Reads of rows at a peer are passed on, and answered as the peer does."""

import asyncio
import time
from itertools import islice
from typing import Any

import grpc
import pytest
from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp
from hypothesis import given, settings
from hypothesis import strategies as st

from query_service.errors import LookupFailedError, MalformedKeyError, NoHistoryError, UnknownStoreError
from query_service.reads import request_checks
from query_service.reads.status import ending_of
from statecast.query.v1 import query_pb2
from statecast.query.v1 import query_service_pb2 as api
from statecast.shard.v1 import shard_service_pb2 as shard
from statecast.state.v1 import state_pb2
from testkit.served_pair import Ending, ServedPair, batch_request, batch_response, get_request, get_response, outcome
from testkit.served_rows import EPOCH, KEY_QUERIES, NAMES, STATE_KEYS, WRITES, Writes
from testkit.served_stores import ME, ServedStores
from testkit.waiting import scaled

MALFORMED = st.sampled_from(
    [None, state_pb2.StateKey(group="a", sort="s"), state_pb2.StateKey(group="a\0b"), state_pb2.StateKey(sort="s")]
)
GETS = st.builds(
    api.GetStateRequest,
    store=st.sampled_from([*NAMES, *NAMES, "unknown"]),
    key=st.one_of(STATE_KEYS, STATE_KEYS, STATE_KEYS, MALFORMED),
)
BATCHES = st.builds(
    api.BatchGetStatesRequest,
    store=st.sampled_from([*NAMES, *NAMES, "unknown"]),
    keys=st.lists(KEY_QUERIES, min_size=1, max_size=12),
)


def in_order(encoded: object) -> tuple[list[query_pb2.KeyResult], list[query_pb2.Freshness]]:
    response = batch_response(encoded)
    return sorted(response.results, key=lambda each: each.index), list(response.freshness)


def owner_of(pair: ServedPair, store: str, group: str) -> ServedStores:
    """Returns the instance that is asked first for a group."""
    view = pair.here.view
    return pair.there if view.shard_map.ranked(*view.shard_of(store, group))[0] == pair.member else pair.here


async def ending(stores: ServedStores, request: api.GetStateRequest) -> bytes | Ending:
    """Returns how the internal service of an instance ends a get."""
    wrapped = shard.GetStateRequest(query=request)
    try:
        answer = stores.shards["GetState"].answer(wrapped.SerializeToString(), None)
    except LookupFailedError as failure:
        return ending_of(failure)
    assert isinstance(answer, bytes)
    return shard.GetStateResponse.FromString(answer).answer.SerializeToString()


def forwarded(ended: bytes | Ending) -> bytes | Ending:
    """Returns the same, as an instance says it that has passed the get on."""
    if isinstance(ended, bytes):
        response = get_response(ended)
        response.freshness.forwarded = True
        return response.SerializeToString()
    code, text, trailing = ended
    trailers = [
        (key, as_forwarded(value) if key == "statecast-freshness-bin" else value)
        for key, value in trailing  # type: ignore[attr-defined]
    ]
    return code, text, tuple(trailers)


def as_forwarded(encoded: bytes) -> bytes:
    freshness = query_pb2.Freshness.FromString(encoded)
    freshness.forwarded = True
    return freshness.SerializeToString()


async def filled(pair: ServedPair, writes: Writes, later_ms: int) -> None:
    for write in writes:
        pair.write(*write)
    pair.note_purged(2)
    pair.move_clocks(later_ms / 1000)


@settings(max_examples=30, deadline=None)
@given(WRITES, st.lists(GETS, max_size=20), st.sampled_from([1, EPOCH, -5, (1 << 63) - 1]), st.integers(0, 9_000))
async def test_a_get_is_answered_as_the_replica_answers_that_is_asked_first(
    writes: Writes, requests: list[api.GetStateRequest], epoch: int, later_ms: int
) -> None:
    async with ServedPair(epoch) as pair:
        await filled(pair, writes, later_ms)
        for request in requests:
            ended = await outcome_of(pair, request)
            if request.store == "unknown" or not is_usual(request.key):
                assert not isinstance(ended, bytes)
                continue
            owner = owner_of(pair, request.store, request.key.group)
            expected = await ending(owner, request)

            assert ended == (forwarded(expected) if owner is pair.there else expected)

        assert (pair.metric("calls_in_flight", method="GetState"), pair.metric("in_flight_bytes")) == (0, 0)


def is_usual(key: state_pb2.StateKey) -> bool:
    return request_checks.is_usual(key.group, key.sort, key.member)


async def outcome_of(pair: ServedPair, request: api.GetStateRequest) -> bytes | Ending:
    try:
        answer = pair.answer("GetState", request)
    except LookupFailedError as failure:
        return ending_of(failure)
    return answer if isinstance(answer, bytes) else await outcome(answer)


@settings(max_examples=30, deadline=None)
@given(WRITES, st.lists(BATCHES, max_size=10), st.integers(0, 9_000))
async def test_a_batch_of_which_a_part_lies_at_a_peer_is_answered_as_one_that_lies_here(
    writes: Writes, requests: list[api.BatchGetStatesRequest], later_ms: int
) -> None:
    """Both hold the same rows; the freshness names who has answered for each partition."""
    async with ServedPair(EPOCH) as pair:
        await filled(pair, writes, later_ms)
        for request in requests:
            if request.store == "unknown":
                with pytest.raises(UnknownStoreError):
                    pair.answer("BatchGetStates", request)
                continue
            results, freshness = in_order(await pair.answered("BatchGetStates", request))
            own_results, own_freshness = in_order(pair.here.local.batch(request, 1e9))

            assert results == own_results
            assert pair.metric("batch_results_total") == len(results)
            for each, own in zip(freshness, own_freshness, strict=True):
                is_there = pair.here.view.shard_map.ranked(request.store, each.partition)[0] == pair.member
                owner = pair.member if is_there else ME
                own.answered_by, own.forwarded = owner.instance, is_there
                assert each == own
            pair.here.metrics.batch_results.reset()

        assert (pair.metric("calls_in_flight", method="BatchGetStates"), pair.metric("in_flight_bytes")) == (0, 0)


async def test_gets_in_flight_together_are_one_call_of_the_peer() -> None:
    async with ServedPair() as pair:
        groups = list(islice(pair.groups(), 20))
        for group in groups[:10]:
            pair.write("keyed", group, group.encode())
        ended = await asyncio.gather(*(outcome(pair.forwarded("GetState", get_request(group))) for group in groups))
        payloads = [api.GetStateResponse.FromString(each).state.payload for each in ended if isinstance(each, bytes)]

        assert payloads == [group.encode() for group in groups[:10]]
        assert [each[0] for each in ended if isinstance(each, tuple)] == [grpc.StatusCode.NOT_FOUND] * 10
        assert pair.server.asked == ["BatchGetStates"]
        assert pair.metric("forwards_total", outcome="answered") == 1
        assert pair.metric("calls_total", method="GetState", outcome="ok") == 10
        assert pair.metric("calls_total", method="GetState", outcome="AbsentError") == 10
        assert pair.metric("call_seconds_count", method="GetState") == 20


@pytest.mark.parametrize("method", ["GetState", "BatchGetStates"])
async def test_a_peer_that_is_late_is_hedged_with_what_this_instance_holds(method: str) -> None:
    async with ServedPair(monotonic=time.monotonic, hedge_after_s=0.02, timeout_s=scaled(5)) as pair:
        group = pair.row_there()
        pair.server.gate.clear()
        request = get_request(group) if method == "GetState" else batch_request(group, next(pair.groups(there=False)))
        answered = await pair.forwarded(method, request)

        assert answered is not None
        if method == "GetState":
            response = api.GetStateResponse.FromString(answered)
            assert (response.state.payload, response.freshness.forwarded) == (b"row", False)
            assert response.freshness.answered_by == ME.instance
        else:
            results, freshness = in_order(answered)
            assert [result.state.payload for result in results] == [b"row", b""]
            assert {(each.answered_by, each.forwarded) for each in freshness} == {(ME.instance, False)}
        assert pair.metric("hedges_total", outcome="won") == 1


async def test_a_late_peer_that_is_hedged_says_no_less_of_an_absent_key() -> None:
    async with ServedPair(monotonic=time.monotonic, hedge_after_s=0.02, timeout_s=scaled(5)) as pair:
        request = get_request(next(pair.groups()))
        pair.server.gate.clear()
        ended = await outcome(pair.forwarded("GetState", request))

        assert ended == await ending(pair.here, request)


@pytest.mark.parametrize(
    ("fields", "failure"),
    [
        ({"as_of": Timestamp(seconds=1)}, NoHistoryError),
        ({"key": state_pb2.StateKey()}, MalformedKeyError),
        ({"key": state_pb2.StateKey(group="a\0b")}, MalformedKeyError),
        ({"key": state_pb2.StateKey(group="a", sort="s")}, MalformedKeyError),
        ({"store": "unknown"}, UnknownStoreError),
    ],
)
async def test_a_wrong_get_is_refused_at_once(fields: dict[str, Any], failure: type[LookupFailedError]) -> None:
    async with ServedPair() as pair:
        with pytest.raises(failure):
            pair.answer("GetState", get_request(next(pair.groups()), **fields))
        assert pair.server.asked == []


@pytest.mark.parametrize(
    "fields",
    [
        {"bounds": query_pb2.Bounds(max_lag_ms=1 << 40)},
        {"max_wait": Duration(nanos=1_000_000)},
        {"ranges": [query_pb2.RangeQuery(group="a")]},
    ],
)
async def test_bounds_waits_and_ranges_are_passed_on_too(fields: dict[str, Any]) -> None:
    async with ServedPair(monotonic=time.monotonic) as pair:
        group, request = next(pair.groups()), batch_request(**fields)
        pair.write("keyed", group, b"row")
        request.keys.add().key.group = group
        (result,) = batch_response(await pair.forwarded("BatchGetStates", request)).results

        assert result.state.payload == b"row"
        assert pair.server.asked == ["BatchGetStates"]


async def test_a_get_with_bounds_goes_alone() -> None:
    async with ServedPair(monotonic=time.monotonic) as pair:
        group = pair.row_there()
        request = get_request(group, bounds=query_pb2.Bounds(max_lag_ms=1 << 40))
        response = get_response(await pair.forwarded("GetState", request))

        assert (response.state.payload, response.freshness.forwarded) == (b"row", True)
        assert pair.server.asked == ["GetState"]


async def test_a_wrong_key_of_a_batch_is_refused_at_once() -> None:
    async with ServedPair() as pair:
        with pytest.raises(MalformedKeyError):
            pair.answer("BatchGetStates", batch_request(next(pair.groups()), "a\0b"))
        assert pair.server.asked == []


async def test_freshness_of_a_split_batch_is_in_the_order_of_partitions() -> None:
    async with ServedPair() as pair:
        view, groups = pair.here.view, dict[int, str]()
        for group in "hgfedcba":
            groups[view.shard_of("keyed", group)[1]] = group
            pair.write("keyed", group, group.encode())
        owners = [view.shard_map.ranked("keyed", partition)[0] for partition in range(3)]
        request = batch_request(groups[2], groups[1], groups[0], groups[1])
        encoded = await pair.forwarded("BatchGetStates", request)
        results, freshness = in_order(encoded)

        assert owners == [ME, pair.member, ME]
        assert [result.state.key.group for result in results] == [groups[2], groups[1], groups[0], groups[1]]
        assert [(each.partition, each.answered_by, each.forwarded, [*each.keys]) for each in freshness] == [
            (0, ME.instance, False, [2]),
            (1, pair.member.instance, True, [1, 3]),
            (2, ME.instance, False, [0]),
        ]
        assert pair.server.asked == ["BatchGetStates"]
