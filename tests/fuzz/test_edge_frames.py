"""The edge answers any frames of a client with frames of the contract, or closes with a code that it names."""

import json
from collections.abc import Callable
from contextlib import suppress

from google.protobuf import json_format
from httpx import AsyncClient
from hypothesis import given
from hypothesis import strategies as st
from inputs.documents import damaged_text, mutated, text_of
from inputs.messages import damaged_bytes, messages, sound_or_odd
from inputs.profiles import fuzz
from inputs.texts import odd_texts
from rigs.edge_errors import CLOSE_CODES, REQUEST_CODES
from rigs.log import Log
from rigs.loop import Loop
from rigs.query_service import EPOCH, GROUP, ORDER
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from statecast.push.v2.order_updates_pb2 import OrderUpdatesReply
from statecast.push.v2.push_pb2 import ClientFrame, PlaceToken, ServerFrame, Step, Watch
from testkit.ws_edge.channels import channel_of, order, orders_of
from testkit.ws_edge.edge import RunningEdge
from ws_edge.codec.frames import BINARY_SUBPROTOCOL
from ws_edge.model.states import Position
from ws_edge.watches.token import Mask, token_of

Frame = str | bytes


class BytesAsText(bytes):
    """The bytes of a text frame, which need not be UTF-8."""


TOO_LARGE = "x" * 20_000
"""More than the largest frame of a client."""

CHANNEL = "CHANNEL"
"""Stands for a channel that is there."""

stores = st.sampled_from(("orders-by-key", "orders-by-customer", "orders-by-item"))
ids = st.integers(1, 99)
masks = st.sampled_from((Mask(0, 2**63), Mask(2**63, 0)))
tokens = st.builds(token_of, masks, st.builds(Position, st.just(EPOCH), st.integers(-1, 50)))
steps = st.builds(Step, store=stores, group_field=st.sampled_from(("order_id", "customer_id")), limit=st.integers(0, 9))
places = st.builds(PlaceToken, path=st.sampled_from(((ORDER,), ("mine", ORDER))), token=tokens)
one = {"id": ids, "token": tokens, "delta": st.booleans(), "times": st.booleans(), "interval_ms": st.just(0)}
many = {"limit": st.integers(0, 30), "reverse": st.booleans(), "steps": st.lists(steps, max_size=3)}
fields = st.lists(st.sampled_from(("order_id", "status")), max_size=2)
watches = (
    st.builds(Watch, store=st.just("orders-by-key"), group=st.just(ORDER), fields=fields, **one)
    | st.builds(Watch, store=st.just("orders-by-customer"), group=st.just(GROUP), fields=fields, **one, **many)
    | st.builds(Watch, id=ids, channel=st.just(CHANNEL), below=st.lists(places, max_size=2))
)
LIKELY = {
    "Watch": watches,
    "Step": steps,
    "PlaceToken": places,
    "store": stores,
    "group": st.sampled_from((GROUP, ORDER)),
    "id": ids,
    "unwatch": ids,
    "token": tokens,
    "interval_ms": st.sampled_from((0, 20, 10**6)),
}
client_frames = messages(ClientFrame.DESCRIPTOR, LIKELY)
binary_frames: st.SearchStrategy[Frame] = damaged_bytes(
    client_frames.map(lambda frame: bytes(frame.SerializeToString()))
)
json_frames: st.SearchStrategy[Frame] = damaged_text(
    mutated(client_frames.map(lambda frame: json.loads(json_format.MessageToJson(frame)))).map(text_of)
)
order_frames: st.SearchStrategy[Frame] = damaged_text(
    mutated(
        st.fixed_dictionaries(
            {
                "type": st.sampled_from(
                    ("order_updates_request", "order_status_updates_request", "order_updates_cancel")
                )
            },
            optional={
                "order_id": sound_or_odd(st.just(ORDER), odd_texts),
                "data": st.fixed_dictionaries({"order_id": sound_or_odd(st.just(ORDER), odd_texts)}),
                "token": sound_or_odd(tokens, odd_texts),
                "interval_ms": st.integers(0, 100),
                "repeat": st.booleans(),
                "ticket": odd_texts,
            },
        )
        | st.fixed_dictionaries({"type": st.just("auth_refresh"), "ticket": odd_texts})
    ).map(text_of)
)


GOOD = ClientFrame(watch=[Watch(id=2**32 - 1, store="orders-by-key", group="good")])
SOCKET_WARNINGS = frozenset({"unknown_field", "unknown_watch"})


def frames_of(frames: st.SearchStrategy[Frame]) -> st.SearchStrategy[list[Frame]]:
    """Returns a few frames; now and then one of the other kind, of no kind, or a large one."""
    others = st.binary(max_size=50) | st.binary(max_size=9).map(BytesAsText) | st.text(max_size=50) | st.just(TOO_LARGE)
    return st.lists(st.integers(0, 9).flatmap(lambda number: others if number == 7 else frames), min_size=1, max_size=5)


def order_reply(frame: Frame) -> str:
    """Checks a frame of the orders' sockets; returns the order that it is about."""
    assert isinstance(frame, str)
    document = json.loads(frame)
    reply = json_format.Parse(frame, OrderUpdatesReply())
    assert reply.type != "error" or document["error"]["code"] in REQUEST_CODES
    return str(reply.data.order_id)


def event_of(frame: Frame) -> ServerFrame:
    """Checks a frame of the stream; returns it."""
    event = ServerFrame.FromString(frame) if isinstance(frame, bytes) else json_format.Parse(frame, ServerFrame())
    codes = {event.ended.code, event.error.code, *(row.error.code for row in event.rows)}
    assert event.ListFields()
    assert codes <= REQUEST_CODES | {""}
    assert event.warning.code in SOCKET_WARNINGS | {""}
    return event


def is_good_answer(frame: Frame) -> bool:
    """Checks any frame; returns whether it answers GOOD. The id of GOOD may have been used before, by chance."""
    event, good = event_of(frame), GOOD.watch[0].id
    is_used = event.error.code == "id_used" and event.error.message.startswith(f"watch {good}:")
    return is_used or (event.id == good and event.HasField("watching"))


async def answered(socket: ClientConnection, is_answer: Callable[[Frame], bool]) -> bool:
    """Reads until the answer, and returns true; false when the edge has closed the socket for a documented reason."""
    with suppress(ConnectionClosed):
        while not is_answer(await socket.recv()):
            pass
        return True
    assert socket.close_code in CLOSE_CODES, f"{socket.close_code} {socket.close_reason}"
    return False


async def exchange(
    open_socket: Callable[[], connect], frames: list[Frame], good: Frame, is_answer: Callable[[Frame], bool]
) -> None:
    """Sends the frames and then a sound one, which must be answered, on another socket when this one was closed."""
    async with open_socket() as socket:
        with suppress(ConnectionClosed):
            for frame in (*frames, good):
                await socket.send(frame, text=isinstance(frame, str | BytesAsText))
        if await answered(socket, is_answer):
            return
    async with open_socket() as socket:
        await socket.send(good)

        assert await answered(socket, is_answer)


@fuzz()
@given(frames_of(order_frames))
def test_frames_of_orders(edge: RunningEdge, loop: Loop, log: Log, frames: list[Frame]) -> None:
    good = json.dumps({"type": "order_updates_request", "order_id": "good"})
    loop.run(exchange(edge.socket, frames, good, lambda frame: order_reply(frame) == "good"))

    log.assert_clean()


@fuzz()
@given(frames_of(json_frames))
def test_json_frames_of_the_stream(edge: RunningEdge, loop: Loop, log: Log, frames: list[Frame]) -> None:
    good = json_format.MessageToJson(GOOD)
    loop.run(exchange(lambda: edge.socket("/v1/stream"), frames, good, is_good_answer))

    log.assert_clean()


@fuzz()
@given(frames_of(binary_frames))
def test_binary_frames_of_the_stream(edge: RunningEdge, loop: Loop, log: Log, frames: list[Frame]) -> None:
    def open_socket() -> connect:
        return edge.socket("/v1/stream", subprotocols=[BINARY_SUBPROTOCOL])

    loop.run(exchange(open_socket, frames, GOOD.SerializeToString(), is_good_answer))

    log.assert_clean()


@fuzz(0.5)
@given(frames_of(json_frames))
def test_frames_about_a_channel(keeping_edge: RunningEdge, loop: Loop, log: Log, frames: list[Frame]) -> None:
    """At a fresh channel for each input."""

    async def run() -> None:
        async with AsyncClient(
            base_url=f"http://{keeping_edge.address}", headers=keeping_edge.headers(), verify=False
        ) as client:
            channel = await channel_of(client, one=order(ORDER), mine=orders_of(GROUP))
        sent = [frame.replace(CHANNEL, channel) if isinstance(frame, str) else frame for frame in frames]
        good = json_format.MessageToJson(GOOD)
        await exchange(lambda: keeping_edge.socket("/v1/stream"), sent, good, is_good_answer)

    loop.run(run())

    log.assert_clean()
