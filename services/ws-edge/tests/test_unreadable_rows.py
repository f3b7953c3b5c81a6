"""A row that is not of its store's message is an error of that row alone, on sockets and by REST; the others go on."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import structlog.testing
from google.protobuf.struct_pb2 import Value
from httpx import AsyncClient
from websockets.asyncio.client import ClientConnection

from statecast.orders.v1.order_pb2 import Order
from statecast.push.v1.push_pb2 import ClientFrame, ServerFrame
from testkit.ws_edge.edge import RunningEdge
from ws_edge.codec.frames import BINARY_SUBPROTOCOL
from ws_edge.model.states import StoreKey

ME = "customer-0001"
STORES = """stores:
  - {name: scores, message: json, keeps: members, readers: everyone}
  - {name: score, message: json, keeps: one, readers: everyone}
  - {name: owned, message: json, keeps: members, readers: {field: player}}
  - {name: orders-by-key, message: statecast.orders.v1.Order, keeps: one, readers: {field: customer_id}}
"""
NOT_A_NUMBER = b'{"v": NaN}'
BOARD = {"store": "scores", "group": "g"}


@asynccontextmanager
async def score_edge() -> AsyncIterator[RunningEdge]:
    async with RunningEdge(stores=STORES, min_interval_ms=20, default_interval_ms=20, tick_ms=5) as edge:
        yield edge


def score(name: str, store: str = "scores") -> StoreKey:
    return StoreKey(store, "g", name, name)


def put(edge: RunningEdge, key: StoreKey, payload: bytes = b'{"v": 1}') -> None:
    """Applies a row as the bytes that stand in its topic."""
    edge.query.put(key, Value(bool_value=True))
    edge.query.held[key].payload = payload  # type: ignore[union-attr]


async def watch(socket: ClientConnection, watched: dict[str, Any], frame_id: str = "7") -> dict[str, Any]:
    await socket.send(json.dumps({"id": frame_id, "watch_range": {"range": watched, "interval_ms": 0}}))
    return dict((await receive(socket))["range_watched"])


async def receive(socket: ClientConnection) -> dict[str, Any]:
    frame: dict[str, Any] = json.loads(await socket.recv())
    return frame


async def test_one_bad_member_is_an_error_of_its_own_and_the_others_go_on() -> None:
    async with score_edge() as edge:
        for name, payload in (("a", b'{"v": 1}'), ("b", NOT_A_NUMBER), ("c", b'{"v": 3}')):
            put(edge, score(name), payload)
        async with edge.socket("/v1/stream") as socket:
            began = await watch(socket, BOARD)
            frames = [await receive(socket) for _ in range(3)]
            put(edge, score("c"), b'{"v": 4}')
            later = await receive(socket)
            put(edge, score("b"))
            mended = await receive(socket)

    assert began["members"] == 2
    assert [each["range_changed"]["key"]["member"] for each in frames if "range_changed" in each] == ["a", "c"]
    [refused] = [each for each in frames if "error" in each]
    assert (refused["id"], refused["error"]["code"]) == ("7", "unreadable_row")
    assert "scores/g/b/b" in refused["error"]["message"]
    assert later["range_changed"]["row"]["value"] == {"v": 4}
    assert mended["range_changed"]["key"]["member"] == "b"


async def test_a_member_that_turns_bad_is_told_by_its_key_and_logged_once() -> None:
    async with score_edge() as edge:
        put(edge, score("a"))
        with structlog.testing.capture_logs() as logs:
            async with edge.socket("/v1/stream") as one, edge.socket("/v1/stream") as other:
                for socket in (one, other):
                    await watch(socket, BOARD)
                    await receive(socket)
                put(edge, score("a"), NOT_A_NUMBER)
                errors = [(await receive(socket))["error"] for socket in (one, other)]

    assert [error["code"] for error in errors] == ["unreadable_row"] * 2
    [line] = [line for line in logs if line["event"] == "row_unreadable"]
    assert (line["store"], line["key"], line["log_level"]) == ("scores", "scores/g/a/a", "error")


@pytest.mark.parametrize(("store", "payload"), [("score", NOT_A_NUMBER), ("orders-by-key", b"\xff\xff\xff")])
async def test_a_bad_key_is_an_error_and_its_subscription_goes_on(store: str, payload: bytes) -> None:
    async with score_edge() as edge, edge.socket("/v1/stream", headers=staff(edge)) as socket:
        put(edge, StoreKey(store, "k"), payload)
        await socket.send(json.dumps({"id": "1", "subscribe": {"store": store, "key": {"group": "k"}}}))
        began, refused = await receive(socket), await receive(socket)
        put(edge, StoreKey(store, "k"), b'{"v": 1}' if store == "score" else b"")
        mended = await receive(socket)

    assert "subscribed" in began
    assert (refused["id"], refused["error"]["code"]) == ("1", "unreadable_row")
    assert f"{store}/k" in refused["error"]["message"]
    assert mended["changed"]["key"] == {"group": "k"}


async def test_an_order_that_cannot_be_read_is_an_error_of_its_id() -> None:
    async with score_edge() as edge, edge.socket(headers=staff(edge)) as socket:
        put(edge, StoreKey("orders-by-key", "12345"), b"\xff\xff\xff")
        await socket.send(json.dumps({"type": "order_status_updates_request", "data": {"order_id": "12345"}}))
        refused = await receive(socket)

    assert (refused["type"], refused["error"]["code"]) == ("error", "unreadable_row")
    assert refused["error"]["order_id"] == "12345"


async def test_who_owns_a_row_that_cannot_be_read_is_unknown_so_strangers_hear_nothing() -> None:
    async with score_edge() as edge, edge.socket("/v1/stream") as socket:
        put(edge, score("a", "owned"), NOT_A_NUMBER)
        put(edge, score("b", "owned"), json.dumps({"player": ME}).encode())
        began = await watch(socket, {"store": "owned", "group": "g"})
        first = await receive(socket)

    assert began["members"] == 1
    assert first["range_changed"]["key"]["member"] == "b"


async def test_a_page_has_the_other_rows_and_an_error_by_the_key() -> None:
    async with score_edge() as edge, client(edge) as alice:
        for name, payload in (("a", b'{"v": 1}'), ("b", NOT_A_NUMBER)):
            put(edge, score(name), payload)
        for address in ("/v1/stores/scores/rows?group=g", "/v1/stores/scores/rows"):
            answer = await alice.get(address)
            [good, refused] = answer.json()["rows"]

            assert (good["key"], good["row"]) == ("a", {"v": 1})
            assert (refused["key"], refused["error"]["code"]) == ("b", "unreadable_row")


async def test_a_key_that_cannot_be_read_is_no_outage() -> None:
    async with score_edge() as edge, client(edge) as alice:
        put(edge, StoreKey("score", "k"), NOT_A_NUMBER)
        [row] = (await alice.get("/v1/stores/score/rows?group=k")).json()["rows"]

    assert row["error"]["code"] == "unreadable_row"
    assert "score/k" in row["error"]["message"]


async def test_a_row_that_no_frame_can_hold_is_an_error_too(edge: RunningEdge) -> None:
    late = Order(order_id="12345", customer_id=ME)
    late.placed_at.seconds = 10**15  # beyond the year 9999, which JSON cannot say
    edge.query.put(StoreKey("orders-by-key", "12345"), late)
    edge.query.put(StoreKey("orders-by-key", "6"), Order(order_id="6", customer_id=ME))
    async with edge.socket("/v1/stream") as socket:
        for name in ("12345", "6"):
            await socket.send(json.dumps({"id": name, "subscribe": {"store": "orders-by-key", "key": {"group": name}}}))
        frames = [await receive(socket) for _ in range(4)]

    assert [each["error"]["code"] for each in frames if "error" in each] == ["unreadable_row"]
    assert [each["changed"]["key"]["group"] for each in frames if "changed" in each] == ["6"]


async def test_binary_sockets_are_told_too() -> None:
    async with score_edge() as edge:
        put(edge, StoreKey("score", "k"), NOT_A_NUMBER)
        async with edge.socket("/v1/stream", subprotocols=[BINARY_SUBPROTOCOL]) as socket:
            frame = ClientFrame(id="1")
            frame.subscribe.store, frame.subscribe.key.group = "score", "k"
            await socket.send(frame.SerializeToString())
            await socket.recv()
            refused = ServerFrame.FromString(await socket.recv(decode=False))

    assert (refused.id, refused.error.code) == ("1", "unreadable_row")


def staff(edge: RunningEdge) -> dict[str, str]:
    return edge.headers("", "staff")


@asynccontextmanager
async def client(edge: RunningEdge) -> AsyncIterator[AsyncClient]:
    async with AsyncClient(base_url=f"http://{edge.address}", headers=edge.headers(ME)) as caller:
        yield caller
