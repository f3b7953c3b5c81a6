"""Despite misbehaving connections, an instance answers a good call, and frees everything afterwards."""

import asyncio
import gc
import random
import struct
from collections.abc import Callable, Iterator
from contextlib import suppress

import grpc
import psutil
import pytest
from google.protobuf.duration_pb2 import Duration
from hypothesis import given
from hypothesis import strategies as st
from inputs.profiles import fuzz
from rigs.log import Log
from rigs.loop import Loop
from rigs.query_service import ORDER, STORES, RunningQueryService
from rigs.query_service import query_service as running_service

from statecast.query.v1 import query_pb2
from statecast.query.v1 import query_service_pb2 as query
from statecast.state.v1.state_pb2 import StateKey
from testkit.raw_grpc import (
    CONTINUATION,
    DATA,
    END_HEADERS,
    HEADERS,
    MAX_FRAME_BYTES,
    PING,
    RST_STREAM,
    SETTINGS,
    WINDOW_UPDATE,
    RawConnection,
    call_frames,
    frame,
    header_block,
)
from testkit.waiting import wait_until_async

SERVICE = "/statecast.query.v1.QueryService"
GET = query.GetStateRequest(store="orders-by-key", key=StateKey(group=ORDER))
POLL = query.BatchGetStatesRequest(
    store="orders-by-key", keys=[query_pb2.KeyQuery(key=StateKey(group="gone"))], max_wait=Duration(seconds=1)
)
GET_FRAMES = call_frames(1, f"{SERVICE}/GetState", GET.SerializeToString())
POLL_FRAMES = call_frames(3, f"{SERVICE}/BatchGetStates", POLL.SerializeToString())
CANCEL = struct.pack(">I", 8)
FRAME_HEADER_BYTES = 9
CONNECTIONS = 500
SPARE_FDS = 20
SPARE_MB = 60


@pytest.fixture(scope="module", params=["native", "grpcio"])
def service(
    request: pytest.FixtureRequest, loop: Loop, log: Log, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningQueryService]:
    """A query service with some rows, behind each server."""
    with running_service(loop, tmp_path_factory.mktemp("data"), STORES, grpc_server=request.param) as service:
        service.fill()
        yield service


async def good_call(service: RunningQueryService) -> None:
    """Makes a sound call over a connection of its own, which must be answered with its row."""
    async with grpc.aio.insecure_channel(service.address) as channel:
        answer = await service.outcome(channel, "GetState", GET)

    assert isinstance(answer, query.GetStateResponse)
    assert answer.state.payload


def in_flight(service: RunningQueryService) -> float:
    """Returns the sum of the metrics of calls in flight and of their bytes."""
    samples = [sample for metric in service.registry.collect() for sample in metric.samples]
    names = ("query_service_calls_in_flight", "query_service_in_flight_bytes")
    return sum(sample.value for sample in samples if sample.name in names)


async def check(service: RunningQueryService, send: Callable[[], None]) -> None:
    """Lets a client send, in a thread; then a good call is answered, and nothing is left in work."""
    with suppress(OSError, EOFError):  # the server may end a connection that makes no sense
        await asyncio.to_thread(send)
    await good_call(service)
    await wait_until_async(lambda: in_flight(service) == 0, lambda: f"{in_flight(service)} are in flight", 20)


frames = st.builds(
    frame, st.integers(0, 12), st.integers(0, 255), st.sampled_from((0, 1, 2, 3, 5, 2**31 - 1)), st.binary(max_size=60)
)
whole_calls = st.sampled_from((GET_FRAMES, POLL_FRAMES))
cut_calls = st.builds(lambda call, length: call[:length], whole_calls, st.integers(0, len(POLL_FRAMES)))


@st.composite
def changed_calls(draw: st.DrawFn) -> bytes:
    """Two calls of which some bytes have others in their place.

    A path beyond UTF-8 ends grpcio's loop. So the new bytes are ASCII, and the lengths of frames stay as they are: else
    a path could take in what comes behind its frame.
    """
    call = bytearray(GET_FRAMES + POLL_FRAMES)
    places = st.sampled_from(places_beside_lengths(bytes(call)))
    for _ in range(draw(st.integers(1, 5))):
        call[draw(places)] = draw(st.integers(0, 127))
    return bytes(call)


def places_beside_lengths(frames: bytes) -> list[int]:
    """Returns the index of each byte that is not in the length of a frame, which are its first three bytes."""
    places, at = list[int](), 0
    while at < len(frames):
        end = at + FRAME_HEADER_BYTES + int.from_bytes(frames[at : at + 3], "big")
        places += range(at + 3, end)
        at = end
    return places


@fuzz()
@given(st.lists(frames | whole_calls | cut_calls | changed_calls(), max_size=6), st.booleans())
def test_frames_of_any_kind_harm_nobody_else(
    service: RunningQueryService, loop: Loop, log: Log, sent: list[bytes], reset: bool
) -> None:
    def send() -> None:
        with RawConnection(service.address) as connection:
            for data in sent:
                connection.send(data)
            if reset:
                connection.reset()

    loop.run(check(service, send))

    log.assert_clean()


def abrupt(connection: RawConnection) -> None:
    for stream in range(1, 61, 2):
        path, request = random.choice(((f"{SERVICE}/GetState", GET), (f"{SERVICE}/BatchGetStates", POLL)))
        connection.send(call_frames(stream, path, request.SerializeToString()))
    connection.reset()


def cancelled_at_once(connection: RawConnection) -> None:
    for stream in range(1, 201, 2):
        call = call_frames(stream, f"{SERVICE}/BatchGetStates", POLL.SerializeToString())
        connection.send(call + frame(RST_STREAM, 0, stream, CANCEL))


def half_open(connection: RawConnection) -> None:
    connection.send(GET_FRAMES[: random.randrange(len(GET_FRAMES))])


def half_a_request(connection: RawConnection) -> None:
    connection.send(frame(HEADERS, END_HEADERS, 1, header_block(f"{SERVICE}/GetState")))
    connection.send(frame(DATA, 0, 1, b"\0" + struct.pack(">I", 1 << 19) + b"x" * (MAX_FRAME_BYTES - 5)))


def large_headers(connection: RawConnection) -> None:
    fields = [(f"field-{number}", "x" * 15_000) for number in range(3)]
    for field in fields:
        connection.send(frame(HEADERS, END_HEADERS, 1, header_block(f"{SERVICE}/GetState", field)))


def headers_without_end(connection: RawConnection) -> None:
    connection.send(frame(HEADERS, 0, 1, header_block(f"{SERVICE}/GetState")))
    for _ in range(1000):
        connection.send(frame(CONTINUATION, 0, 1))


def pings_and_settings(connection: RawConnection) -> None:
    for number in range(1000):
        connection.send(frame(PING, 0, 0, struct.pack(">Q", number)))
        connection.send(frame(SETTINGS, 0, 0, struct.pack(">HI", 3, number)))


def windows_beyond_the_largest(connection: RawConnection) -> None:
    connection.send(GET_FRAMES)
    for _ in range(3):
        connection.send(frame(WINDOW_UPDATE, 0, 1, struct.pack(">I", 2**31 - 1)))


def never_read(connection: RawConnection) -> None:
    for stream in range(1, 61, 2):
        connection.send(call_frames(stream, f"{SERVICE}/GetState", GET.SerializeToString()))


@pytest.mark.parametrize(
    "act",
    [
        abrupt,
        cancelled_at_once,
        half_open,
        half_a_request,
        large_headers,
        headers_without_end,
        pings_and_settings,
        windows_beyond_the_largest,
        never_read,
    ],
)
def test_a_client_that_misbehaves_leaves_nothing_behind(
    service: RunningQueryService, loop: Loop, log: Log, act: Callable[[RawConnection], None]
) -> None:
    def send() -> None:
        for _ in range(5):
            with suppress(OSError), RawConnection(service.address, window_bytes=0) as connection:
                act(connection)

    loop.run(check(service, send))

    log.assert_clean()


def test_a_client_that_is_gone_before_its_answers_is_no_error(
    service: RunningQueryService, loop: Loop, log: Log
) -> None:
    def send() -> None:
        for _ in range(20):  # below the thousand calls that wait, beyond which grpcio drops any
            with RawConnection(service.address, window_bytes=0) as connection:
                never_read(connection)
                connection.reset()

    for _ in range(20):
        loop.run(check(service, send))

    log.assert_clean()


def test_a_header_that_is_no_utf_8_is_no_error_of_ours(service: RunningQueryService, loop: Loop, log: Log) -> None:
    def send() -> None:
        with RawConnection(service.address) as connection:
            connection.send(call_frames(1, f"{SERVICE}/GetState", GET.SerializeToString(), ("field", "\udc90")))
            connection.until(HEADERS)

    loop.run(check(service, send))

    log.assert_clean()


def test_hundreds_of_connections_give_back_their_files_and_their_memory(
    service: RunningQueryService, loop: Loop, log: Log
) -> None:
    """Each has a whole call, half of one, or none, while another client makes good calls."""
    process = psutil.Process()

    def send() -> None:
        connections = [RawConnection(service.address) for _ in range(CONNECTIONS)]
        for connection in connections:
            connection.send(random.choice((GET_FRAMES, POLL_FRAMES, POLL_FRAMES[:100], b"")))
        for connection in connections:
            random.choice((connection.reset, connection.socket.close))()

    def given_back() -> bool:
        return process.num_fds() <= fds + SPARE_FDS

    async def rounds(count: int) -> None:
        for _ in range(count):
            await asyncio.gather(check(service, send), *(good_call(service) for _ in range(5)))
        await wait_until_async(given_back, lambda: f"{process.num_fds()} files are open, {fds} before", 20)

    fds = process.num_fds()
    loop.run(rounds(1))
    gc.collect()
    before = process.memory_info().rss
    loop.run(rounds(3))
    gc.collect()

    assert process.memory_info().rss - before < SPARE_MB << 20
    log.assert_clean()
