"""Forwarded reads keep to the time of their caller, to the memory, and to the size of a response."""

import asyncio
import time
from itertools import islice

import grpc
import pytest

from query_service.errors import OverloadedError, TimedOutError
from testkit.served_pair import ServedPair, batch_request, batch_response, get_request, get_response, outcome
from testkit.served_stores import ME
from testkit.waiting import scaled


@pytest.mark.parametrize("method", ["GetState", "BatchGetStates"])
@pytest.mark.parametrize(("in_flight_bytes", "left_s"), [(1000, None), (1 << 30, 0.0), (1 << 30, -1.0)])
async def test_without_memory_or_time_nobody_is_asked_and_no_retry_is_used_up(
    method: str, in_flight_bytes: int, left_s: float | None
) -> None:
    async with ServedPair(in_flight_bytes=in_flight_bytes) as pair:
        group = next(pair.groups())
        pair.peer.failed(pair.here.view.shard_of("keyed", group))
        during = pair.is_usable(group)
        pair.move_clocks(61)
        request = get_request(group) if method == "GetState" else batch_request(group, next(pair.groups(there=False)))
        with pytest.raises((OverloadedError, TimedOutError)):
            pair.answer(method, request, left_s)
        may_retry = pair.is_usable(group), pair.is_usable(group)

        assert (during, *may_retry) == (False, True, False)
        assert pair.server.asked == []
        assert (pair.metric("calls_in_flight", method=method), pair.metric("in_flight_bytes")) == (0, 0)


async def test_gets_whose_time_is_over_share_no_batch_with_others() -> None:
    async with ServedPair() as pair:
        groups = list(islice(pair.groups(), 20))
        usual = []
        for group in groups:
            pair.write("keyed", group, group.encode())
            with pytest.raises(TimedOutError):
                pair.answer("GetState", get_request(group), 0.0)
            usual.append(pair.forwarded("GetState", get_request(group)))
        responses = [get_response(each) for each in await asyncio.gather(*usual)]

        assert [response.state.payload for response in responses] == [group.encode() for group in groups]
        assert {response.freshness.answered_by for response in responses} == {pair.member.instance}
        assert pair.server.asked == ["BatchGetStates"]
        assert pair.metric("calls_total", method="GetState", outcome="ok") == 20
        assert pair.metric("forwards_total", outcome="unreachable") == 0


@pytest.mark.parametrize("is_large_first", [False, True])
async def test_of_gets_together_those_alone_fail_whose_response_there_is_no_memory_for(is_large_first: bool) -> None:
    async with ServedPair(in_flight_bytes=20_000) as pair:
        small, large = islice(pair.groups(), 2)
        pair.write("keyed", small, b"row")
        pair.write("keyed", large, b"x" * 30_000)
        groups = [large, small] if is_large_first else [small, large]
        ended = await asyncio.gather(*(outcome(pair.forwarded("GetState", get_request(group))) for group in groups))
        by_group = dict(zip(groups, ended, strict=True))
        refused = by_group[large]

        assert pair.server.asked == ["BatchGetStates"]
        assert isinstance(refused, tuple)
        assert refused[0] == grpc.StatusCode.RESOURCE_EXHAUSTED
        response = get_response(by_group[small])
        assert (response.state.payload, response.freshness.answered_by) == (b"row", pair.member.instance)
        assert pair.metric("calls_total", method="GetState", outcome="ok") == 1
        assert pair.metric("calls_total", method="GetState", outcome="OverloadedError") == 1
        assert (pair.metric("calls_in_flight", method="GetState"), pair.metric("in_flight_bytes")) == (0, 0)


async def test_a_batch_whose_response_there_is_no_memory_for_fails() -> None:
    async with ServedPair(in_flight_bytes=20_000) as pair:
        here, there = next(pair.groups(there=False)), next(pair.groups())
        pair.write("keyed", there, b"x" * 30_000)
        request = batch_request(here, there)
        ended = await outcome(pair.forwarded("BatchGetStates", request))
        asked = [*pair.server.asked]

        assert asked == ["BatchGetStates"]
        assert isinstance(ended, tuple)
        assert ended[0] == grpc.StatusCode.RESOURCE_EXHAUSTED
        assert pair.metric("calls_total", method="BatchGetStates", outcome="OverloadedError") == 1
        assert (pair.metric("calls_in_flight", method="BatchGetStates"), pair.metric("in_flight_bytes")) == (0, 0)


async def test_a_split_batch_that_is_too_large_is_capped_with_one_call_of_the_peer() -> None:
    async with ServedPair(response_bytes=4000) as pair:
        there, here = list(islice(pair.groups(), 2)), list(islice(pair.groups(there=False), 2))
        groups = [there[0], here[0], there[1], here[1]]
        for group in groups:
            pair.write("keyed", group, b"x" * 1500)
        request = batch_request(*groups)
        response = batch_response(await pair.forwarded("BatchGetStates", request))
        asked, news = [*pair.server.asked], pair.metric("batch_results_total")
        codes = {result.index: result.error.code for result in response.results}

        assert asked == ["BatchGetStates"]
        assert response.ByteSize() <= 4000
        assert sorted(codes.values()) == [0, 0, *[grpc.StatusCode.RESOURCE_EXHAUSTED.value[0]] * 2]
        assert news == 4


async def test_the_time_of_a_get_has_the_wait_for_a_peer_that_times_out() -> None:
    """This instance restores the partition when the get begins, so that no replica but the peer is asked."""
    timeout_s = scaled(0.1)
    async with ServedPair(monotonic=time.monotonic, timeout_s=timeout_s) as pair:
        group = pair.row_there()
        replica = pair.here.view.replicas[pair.here.view.shard_of("keyed", group)]
        replica.progress.serving = False
        pair.server.gate.clear()
        answering = asyncio.create_task(pair.answered("GetState", get_request(group)))
        await pair.until_asked()
        replica.progress.serving = True
        response = get_response(await answering)

        assert (response.state.payload, response.freshness.answered_by) == (b"row", ME.instance)
        assert pair.server.asked == ["BatchGetStates"]
        assert pair.metric("forwards_total", outcome="unreachable") == 1
        assert pair.metric("call_seconds_count", method="GetState") == 1
        assert pair.metric("call_seconds_sum", method="GetState") >= timeout_s
