"""What lies at a peer is passed on from bytes to bytes, and answered as the servicer would answer it."""

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

from statecast.query.v1 import query_pb2
from statecast.query.v1 import query_service_pb2 as api
from statecast.state.v1 import state_pb2
from testkit.served_pair import Ending, ServedPair, batch_request, get_request, outcome
from testkit.served_rows import EPOCH, KEY_QUERIES, NAMES, STATE_KEYS, WRITES, Writes
from testkit.served_stores import ME
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


def is_forwarded(ended: bytes | Ending) -> bool:
    """Whether a get was answered by a peer, with a value or with its absence."""
    if isinstance(ended, bytes):
        return api.GetStateResponse.FromString(ended).freshness.forwarded
    trailing: Any = ended[2]
    return query_pb2.Freshness.FromString(dict(trailing).get("statecast-freshness-bin", b"")).forwarded


def in_order(encoded: object) -> tuple[list[query_pb2.KeyResult], list[query_pb2.Freshness]]:
    assert isinstance(encoded, bytes)
    response = api.BatchGetStatesResponse.FromString(encoded)
    return sorted(response.results, key=lambda each: each.index), list(response.freshness)


async def filled(pair: ServedPair, writes: Writes, later_ms: int) -> None:
    for write in writes:
        pair.write(*write)
    pair.note_purged(2)
    pair.move_clocks(later_ms / 1000)


@settings(max_examples=30, deadline=None)
@given(WRITES, st.lists(GETS, max_size=20), st.sampled_from([1, EPOCH, -5, (1 << 63) - 1]), st.integers(0, 9_000))
async def test_a_forwarded_get_is_answered_as_the_servicer_does(
    writes: Writes, requests: list[api.GetStateRequest], epoch: int, later_ms: int
) -> None:
    async with ServedPair(epoch) as pair:
        await filled(pair, writes, later_ms)
        answers = [pair.fast("GetState", request) for request in requests]
        for request, answer in zip(requests, answers, strict=True):
            expected = await pair.slow("GetState", request)

            assert isinstance(answer, asyncio.Future) == is_forwarded(expected)
            if isinstance(answer, asyncio.Future):
                assert await outcome(answer) == expected

        assert (pair.metric("calls_in_flight", method="GetState"), pair.metric("in_flight_bytes")) == (0, 0)


@settings(max_examples=30, deadline=None)
@given(WRITES, st.lists(BATCHES, max_size=10), st.integers(0, 9_000))
async def test_a_batch_of_which_a_part_lies_at_a_peer_is_answered_as_the_servicer_does(
    writes: Writes, requests: list[api.BatchGetStatesRequest], later_ms: int
) -> None:
    async with ServedPair(EPOCH) as pair:
        await filled(pair, writes, later_ms)
        for request in requests:
            answer = pair.fast("BatchGetStates", request)
            fast = await answer if isinstance(answer, asyncio.Future) else answer
            news = pair.metric("batch_results_total")
            expected = await pair.slow("BatchGetStates", request)
            if not isinstance(expected, bytes):
                assert answer is None
                continue
            _, freshness = in_order(expected)

            assert isinstance(answer, asyncio.Future) == any(each.forwarded for each in freshness)
            assert in_order(fast) == in_order(expected)
            assert pair.metric("batch_results_total") == 2 * news
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
        group = next(pair.groups())
        pair.write("keyed", group, b"row")
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
        expected = await pair.slow("GetState", request)

        assert ended == expected
        assert not is_forwarded(expected)


@pytest.mark.parametrize(
    "fields",
    [
        {"bounds": query_pb2.Bounds(max_lag_ms=10)},
        {"as_of": Timestamp(seconds=1)},
        {"key": state_pb2.StateKey()},
        {"key": state_pb2.StateKey(group="a\0b")},
        {"key": state_pb2.StateKey(group="a", sort="s")},
        {"store": "unknown"},
    ],
)
async def test_a_get_that_the_servicer_has_to_decide_is_not_passed_on(fields: dict[str, Any]) -> None:
    async with ServedPair() as pair:
        assert pair.fast("GetState", get_request(next(pair.groups()), **fields)) is None
        assert pair.server.asked == []


@pytest.mark.parametrize(
    "fields",
    [
        {"ranges": [query_pb2.RangeQuery(group="a")]},
        {"max_wait": Duration(seconds=1)},
        {"bounds": query_pb2.Bounds(max_lag_ms=10)},
    ],
)
async def test_a_batch_that_the_servicer_has_to_decide_is_not_passed_on(fields: dict[str, Any]) -> None:
    async with ServedPair() as pair:
        group = next(pair.groups())

        assert pair.fast("BatchGetStates", batch_request(group, **fields)) is None
        assert pair.fast("BatchGetStates", batch_request(group, "a\0b")) is None
        assert pair.server.asked == []


async def test_freshness_of_a_split_batch_is_in_the_order_of_partitions() -> None:
    async with ServedPair() as pair:
        view, groups = pair.here.view, dict[int, str]()
        for group in "hgfedcba":
            groups[view.partition_of("keyed", group)] = group
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
        assert in_order(await pair.slow("BatchGetStates", request)) == (results, freshness)
