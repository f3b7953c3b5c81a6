"""The next replica answers reads that a peer does not, and no caller suffers from another."""

import asyncio
import time
from itertools import islice

import grpc
import pytest

from query_service.cluster.misplaced import Misplaced
from query_service.errors import MisplacedKeyError
from statecast.query.v1 import query_pb2
from statecast.query.v1.query_service_pb2 import ScanStatesRequest
from testkit.served_pair import ServedPair, batch_request, batch_response, get_request, get_response, outcome
from testkit.served_stores import ME
from testkit.waiting import scaled


def is_answered_here(freshness: query_pb2.Freshness) -> bool:
    return (freshness.answered_by, freshness.forwarded) == (ME.instance, False)


def assert_rows_here(encoded: object, *payloads: bytes) -> None:
    response = batch_response(encoded)

    assert [each.state.payload for each in sorted(response.results, key=lambda each: each.index)] == [*payloads]
    assert all(map(is_answered_here, response.freshness))
    assert sorted(index for each in response.freshness for index in each.keys) == [*range(len(payloads))]


async def test_a_peer_that_is_gone_leaves_the_call_to_the_next_replica_and_is_not_asked_again() -> None:
    async with ServedPair() as pair:
        group = pair.row_there()
        assert (get_response(await pair.answered("GetState", get_request(group)))).freshness.forwarded
        await pair.server.stop()
        get, batch = await asyncio.gather(
            pair.forwarded("GetState", get_request(group)), pair.forwarded("BatchGetStates", batch_request(group))
        )
        peer_is_usable = pair.is_usable(group)
        later = pair.answer("GetState", get_request(group))
        response = get_response(await pair.answered("GetState", get_request(group)))

        assert not peer_is_usable
        for each in (get_response(get), get_response(later), response):
            assert is_answered_here(each.freshness)
            assert each.state.payload == b"row"
        assert_rows_here(batch, b"row")
        assert pair.server.asked == ["BatchGetStates"]
        assert pair.metric("calls_total", method="GetState", outcome="ok") == 4
        assert pair.metric("call_seconds_count", method="GetState") == 4
        assert pair.metric("forwards_total", outcome="unreachable") == 2
        assert (pair.metric("calls_in_flight", method="GetState"), pair.metric("in_flight_bytes")) == (0, 0)


async def test_a_peer_that_is_dropped_while_it_is_asked_leaves_the_call_to_the_next_replica() -> None:
    async with ServedPair() as pair:
        group = pair.row_there()
        pair.server.gate.clear()
        answers = [
            pair.forwarded("GetState", get_request(group)),
            pair.forwarded("BatchGetStates", batch_request(group)),
        ]
        await pair.until_asked(2)
        await pair.peers.keep(())

        get, batch = await asyncio.gather(*answers)

        assert is_answered_here(get_response(get).freshness)
        assert get_response(get).state.payload == b"row"
        assert_rows_here(batch, b"row")
        assert pair.server.asked == ["BatchGetStates"] * 2
        assert pair.metric("forwards_total", outcome="unreachable") == 2


@pytest.mark.parametrize(
    "code", [grpc.StatusCode.INTERNAL, grpc.StatusCode.RESOURCE_EXHAUSTED, grpc.StatusCode.UNIMPLEMENTED]
)
async def test_a_peer_that_answers_with_an_error_leaves_the_call_to_the_next_replica(code: grpc.StatusCode) -> None:
    async with ServedPair() as pair:
        group = pair.row_there()
        pair.server.failure = code
        split = pair.forwarded("BatchGetStates", batch_request(group, next(pair.groups(there=False))))
        batch, get = await asyncio.gather(split, pair.answered("GetState", get_request(group)))
        response = get_response(get)

        assert_rows_here(batch, b"row", b"")
        assert is_answered_here(response.freshness)
        assert response.state.payload == b"row"
        assert pair.server.asked == ["BatchGetStates"] * 2
        assert pair.metric("calls_total", method="GetState", outcome="ok") == 1
        assert pair.metric("calls_total", method="BatchGetStates", outcome="ok") == 1
        unreachable = 0 if code == grpc.StatusCode.RESOURCE_EXHAUSTED else 2
        assert pair.metric("forwards_total", outcome="unreachable") == unreachable


async def test_a_key_that_the_peer_knows_to_be_misplaced_is_refused_although_the_next_replica_has_no_row() -> None:
    async with ServedPair() as pair:
        group = next(pair.groups())
        pair.there.view.misplaced = {"keyed": Misplaced(frozenset({group}), everything=False, reason="it is", fit="")}

        with pytest.raises(MisplacedKeyError, match="is not looked up: it is"):
            await pair.answered("GetState", get_request(group))
        with pytest.raises(MisplacedKeyError, match="is not looked up: it is"):
            await pair.answered("ScanStates", ScanStatesRequest(store="keyed", group=group))


async def test_a_peer_that_is_overloaded_is_asked_again_by_the_next_call() -> None:
    async with ServedPair() as pair:
        group = pair.row_there()
        pair.server.failure = grpc.StatusCode.RESOURCE_EXHAUSTED
        refused = get_response(await pair.answered("GetState", get_request(group)))
        pair.server.failure = None
        response = get_response(await pair.answered("GetState", get_request(group)))

        assert is_answered_here(refused.freshness)
        assert response.freshness.answered_by == pair.member.instance


async def test_a_peer_that_is_silent_for_the_whole_time_out_is_not_asked_again() -> None:
    async with ServedPair(monotonic=time.monotonic, timeout_s=scaled(0.1)) as pair:
        group = pair.row_there()
        assert (get_response(await pair.answered("GetState", get_request(group)))).freshness.forwarded
        pair.server.gate.clear()
        answer = await pair.forwarded("GetState", get_request(group))

        assert is_answered_here(get_response(answer).freshness)
        assert get_response(answer).state.payload == b"row"
        assert not pair.is_usable(group)
        assert len(pair.server.asked) == 2
        assert pair.metric("forwards_total", outcome="unreachable") == 1


async def test_a_caller_with_little_time_left_shortens_the_call_of_no_other() -> None:
    async with ServedPair(timeout_s=scaled(10)) as pair:
        group = pair.row_there()
        pair.server.gate.clear()
        hasty = pair.forwarded("GetState", get_request(group), scaled(0.1))
        patient = pair.forwarded("GetState", get_request(group), 600)
        without_deadline = pair.forwarded("GetState", get_request(group))
        first = get_response(await hasty)
        peer_is_usable = pair.is_usable(group)
        others_wait = not patient.done() and not without_deadline.done()
        pair.server.gate.set()
        others = [get_response(each) for each in await asyncio.gather(patient, without_deadline)]

        assert is_answered_here(first.freshness)
        assert peer_is_usable
        assert others_wait
        assert [each.state.payload for each in (first, *others)] == [b"row"] * 3
        assert [each.freshness.answered_by for each in others] == [pair.member.instance] * 2
        assert pair.server.asked == ["BatchGetStates"] * 3
        assert pair.metric("forwards_total", outcome="unreachable") == 1
        assert pair.metric("forwards_total", outcome="answered") == 2
        assert pair.metric("calls_total", method="GetState", outcome="ok") == 3


async def test_a_caller_that_is_cancelled_cancels_no_other_and_gives_its_memory_back() -> None:
    async with ServedPair() as pair:
        group = pair.row_there()
        pair.server.gate.clear()
        request = batch_request(group, next(pair.groups(there=False)))
        gone = [pair.forwarded("GetState", get_request(group)), pair.forwarded("BatchGetStates", request)]
        others = [pair.forwarded("GetState", get_request(group)), pair.forwarded("BatchGetStates", request)]
        held = pair.metric("in_flight_bytes")
        await pair.until_asked(3)
        for each in gone:
            each.cancel()
        await asyncio.gather(*gone, return_exceptions=True)
        held_after = pair.metric("in_flight_bytes")
        pair.server.gate.set()

        assert len(await asyncio.gather(*others)) == 2
        assert held_after * 2 == held > 0
        for method in ("GetState", "BatchGetStates"):
            assert pair.metric("calls_total", method=method, outcome="interrupted") == 1
            assert pair.metric("calls_total", method=method, outcome="ok") == 1
            assert pair.metric("calls_in_flight", method=method) == 0
        assert pair.metric("in_flight_bytes") == 0


async def test_a_peer_that_is_overloaded_is_not_asked_once_more_for_each_get_of_a_batch() -> None:
    async with ServedPair() as pair:
        groups = list(islice(pair.groups(), 60))
        for replica in pair.here.view.replicas.values():
            replica.progress.serving = False
        pair.server.failure = grpc.StatusCode.RESOURCE_EXHAUSTED
        ended = await asyncio.gather(*(outcome(pair.forwarded("GetState", get_request(group))) for group in groups))

        assert {each[0] for each in ended if isinstance(each, tuple)} == {grpc.StatusCode.UNAVAILABLE}
        assert len(ended) == 60
        assert pair.server.asked == ["BatchGetStates"]
