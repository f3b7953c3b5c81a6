"""A row that is larger than the largest frame is an error of its key; all else on the socket goes on."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import pytest
from google.protobuf.json_format import ParseDict
from google.protobuf.struct_pb2 import Value
from httpx import AsyncClient
from websockets.asyncio.client import ClientConnection

from statecast.orders.v1.order_pb2 import Order
from statecast.push.v1.push_pb2 import ClientFrame, ServerFrame
from testkit.ws_edge.edge import RunningEdge
from ws_edge.codec.frames import BINARY_SUBPROTOCOL
from ws_edge.model.states import StoreKey

STORES = """stores:
  - {name: texts, message: json, keeps: one, readers: everyone}
  - {name: boards, message: json, keeps: members, readers: everyone}
  - {name: orders-by-key, message: statecast.orders.v1.Order, keeps: one, readers: {field: customer_id}}
"""
LIMIT = 1_048_576
"""The documented one, and the largest frame that a client of Python or iOS takes by default."""
LARGE, SMALL = StoreKey("texts", "large"), StoreKey("texts", "small")


@asynccontextmanager
async def text_edge(**settings: Any) -> AsyncIterator[RunningEdge]:
    limits = {"min_interval_ms": 20, "default_interval_ms": 20, "tick_ms": 5} | settings
    async with RunningEdge(stores=STORES, **limits) as edge:
        yield edge


def put(edge: RunningEdge, key: StoreKey, size: int) -> None:
    edge.query.put(key, Value(string_value="x" * size))


async def receive(socket: ClientConnection) -> dict[str, Any]:
    frame: dict[str, Any] = json.loads(await socket.recv())
    return frame


async def watch(socket: ClientConnection, key: StoreKey) -> None:
    """Watches the key, by its group as the id of the frame."""
    await socket.send(json.dumps({"id": key.group, "subscribe": {"store": key.store, "key": {"group": key.group}}}))
    assert (await receive(socket))["id"] == key.group


async def test_a_watched_row_that_grows_too_large_is_an_error_of_its_key_and_comes_when_it_shrinks() -> None:
    async with text_edge() as edge:
        put(edge, LARGE, 1)
        put(edge, SMALL, 1)
        async with edge.socket("/v1/stream") as socket:
            for key in (LARGE, SMALL):
                await watch(socket, key)
                await receive(socket)
            put(edge, LARGE, LIMIT)
            grown = await receive(socket)
            put(edge, SMALL, 2)
            beside = await receive(socket)
            put(edge, LARGE, 3)
            shrunk = await receive(socket)

    assert (grown["id"], grown["error"]["code"]) == ("large", "row_too_large")
    assert "texts/large" in grown["error"]["message"]
    assert str(LIMIT) in grown["error"]["message"]
    assert beside["changed"]["row"]["value"] == "xx"
    assert shrunk["changed"]["row"]["value"] == "xxx"


async def test_frames_up_to_the_largest_are_sent_and_counted_in_bytes() -> None:
    key, limit, commit = StoreKey("texts", "edge"), 20_000, datetime.now(UTC)  # texts of two times differ in length
    async with text_edge(max_sent_frame_bytes=limit) as edge, edge.socket("/v1/stream") as socket:
        edge.query.put(key, Value(string_value="x" * 10_000), commit)
        await watch(socket, key)
        rest = limit - (len(await socket.recv()) - 10_000)
        frames = []
        for text in ("x" * rest, "x" * (rest + 1), "é" * (rest // 2), "é" * (rest // 2 + 1)):
            edge.query.put(key, Value(string_value=text), commit)
            frames.append(await receive(socket))

    assert ["changed" in frame for frame in frames] == [True, False, True, False]


@pytest.mark.parametrize("subprotocol", [None, BINARY_SUBPROTOCOL])
async def test_a_snapshot_leaves_out_the_one_member_that_is_too_large(subprotocol: str | None) -> None:
    keys = [StoreKey("boards", "g", name, name) for name in "abc"]
    async with text_edge() as edge:
        for key, size in zip(keys, (600_000, LIMIT, 600_000), strict=True):
            put(edge, key, size)
        async with edge.socket("/v1/stream", subprotocols=subprotocol and [subprotocol]) as socket:
            request = {"id": "7", "watch_range": {"range": {"store": "boards", "group": "g"}}}
            await socket.send(_binary(request) if subprotocol else json.dumps(request))
            frames = [_document(await socket.recv()) for _ in range(4)]

    assert [each["range_changed"]["key"]["member"] for each in frames if "range_changed" in each] == ["a", "c"]
    [error] = [each["error"] for each in frames if "error" in each]
    assert error["code"] == "row_too_large"
    assert "boards/g/b/b" in error["message"]


async def test_a_large_row_does_not_count_for_a_slow_client_beyond_its_error() -> None:
    """A row of more bytes than may wait closed the socket, and the keys beside it."""
    async with text_edge(max_sent_frame_bytes=131_072) as edge:
        put(edge, LARGE, 200_000)
        put(edge, SMALL, 1)
        async with edge.socket("/v1/stream") as socket:
            await watch(socket, LARGE)
            refused = await receive(socket)
            await watch(socket, SMALL)
            beside = await receive(socket)

    assert refused["error"]["code"] == "row_too_large"
    assert beside["changed"]["row"]["value"] == "x"


async def test_a_row_beyond_an_answer_of_the_query_service_is_told_too() -> None:
    async with text_edge() as edge:
        put(edge, LARGE, 1)
        put(edge, SMALL, 1)
        async with edge.socket("/v1/stream") as socket:
            for key in (LARGE, SMALL):
                await watch(socket, key)
                await receive(socket)
            edge.query.too_large = frozenset({LARGE})
            grown = await receive(socket)
            put(edge, SMALL, 2)
            beside = await receive(socket)
            edge.query.too_large = frozenset()
            put(edge, LARGE, 3)
            shrunk = await receive(socket)

    assert (grown["id"], grown["error"]["code"]) == ("large", "row_too_large")
    assert beside["changed"]["row"]["value"] == "xx"
    assert shrunk["changed"]["row"]["value"] == "xxx"


async def test_a_large_order_is_an_error_with_its_id_and_whole_by_rest() -> None:
    order = Order(order_id="12345", customer_id="customer-0001", tracking_number="x" * LIMIT)
    async with text_edge() as edge:
        edge.query.put(StoreKey("orders-by-key", "12345"), order)
        async with edge.socket("/update/orders/12345") as socket, asyncio.timeout(30):
            refused = await receive(socket)
        async with AsyncClient(base_url=f"http://{edge.address}", headers=edge.headers()) as client:
            whole = await client.get("/update/orders/12345")

    assert (refused["error"]["code"], refused["error"]["order_id"]) == ("row_too_large", "12345")
    assert whole.json()["data"]["tracking_number"] == order.tracking_number


def _binary(request: dict[str, Any]) -> bytes:
    return ParseDict(request, ClientFrame()).SerializeToString()


def _document(frame: str | bytes) -> dict[str, Any]:
    if isinstance(frame, str):
        return dict(json.loads(frame))
    message = ServerFrame.FromString(frame)
    if message.HasField("range_changed"):
        return {"range_changed": {"key": {"member": message.range_changed.key.member}}}
    if message.HasField("error"):
        return {"error": {"code": message.error.code, "message": message.error.message}}
    return {}
