"""A row that is larger than the largest frame is an error of its key; all else on the socket goes on."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from google.protobuf.json_format import ParseDict
from google.protobuf.struct_pb2 import Value

from statecast.orders.v1.order_pb2 import Order
from testkit.ws_edge.edge import RunningEdge
from testkit.ws_edge.stream import BINARY, StreamClient, stream_client
from ws_edge.model.states import StoreKey

STORES = """stores:
  - {name: texts, message: json, keeps: one, readers: everyone}
  - {name: boards, message: json, keeps: members, readers: everyone}
  - {name: orders-by-key, message: statecast.orders.v1.Order, keeps: one, readers: {field: customer_id}}
"""
LIMIT = 1_000_000
"""The largest frame that `hello` tells of."""
LARGE, SMALL = StoreKey("texts", "large"), StoreKey("texts", "small")


@asynccontextmanager
async def text_edge(**settings: Any) -> AsyncIterator[RunningEdge]:
    limits = {"min_interval_ms": 20, "default_interval_ms": 20, "tick_ms": 5} | settings
    async with RunningEdge(stores=STORES, **limits) as edge:
        yield edge


def put(edge: RunningEdge, key: StoreKey, size: int) -> None:
    edge.query.put(key, Value(string_value="x" * size))


def watch(key: StoreKey, watch_id: int) -> dict[str, Any]:
    return {"id": watch_id, "store": key.store, "group": key.group}


async def begin(client: StreamClient) -> None:
    """Watches the two keys, by the ids 1 and 2."""
    await client.say(watch=[watch(LARGE, 1), watch(SMALL, 2)])
    await client.until_current(1)
    await client.until_current(2)


@pytest.mark.parametrize("bound", ["frame", "answer of the query service"])
async def test_a_watched_row_that_grows_too_large_is_an_error_of_its_key_and_comes_when_it_shrinks(bound: str) -> None:
    async with text_edge() as edge, stream_client(edge) as client:
        put(edge, LARGE, 1)
        put(edge, SMALL, 1)
        await begin(client)
        edge.query.too_large = frozenset() if bound == "frame" else frozenset({LARGE})
        put(edge, LARGE, LIMIT)
        grown = await client.next()
        put(edge, SMALL, 2)
        beside = await client.next()
        edge.query.too_large = frozenset()
        put(edge, LARGE, 3)
        shrunk = await client.next()

    [row] = grown["rows"]
    assert (grown["id"], row["error"]["code"]) == (1, "row_too_large")
    assert "texts/large" in row["error"]["message"]
    assert (str(LIMIT) in row["error"]["message"]) == (bound == "frame")
    assert (beside["id"], beside["rows"]) == (2, [{"row": "xx"}])
    assert (shrunk["id"], shrunk["rows"]) == (1, [{"row": "xxx"}])


@pytest.mark.parametrize("subprotocol", [None, BINARY])
async def test_a_snapshot_has_an_error_of_the_one_row_that_is_too_large(subprotocol: str | None) -> None:
    keys = [StoreKey("boards", "g", name, name) for name in "abc"]
    async with text_edge() as edge:
        for key, size in zip(keys, (600_000, LIMIT, 600_000), strict=True):
            put(edge, key, size)
        async with stream_client(edge, subprotocols=subprotocol and [subprotocol]) as client:
            await client.begin({"id": 7, "store": "boards", "group": "g"})

    assert client.rows[7, ""].keys() == {"a", "c"}
    [error] = [row for frame in client.frames for row in frame.get("rows", ()) if "error" in row]
    assert (error["key"], error["error"]["code"]) == ("b", "row_too_large")
    assert "boards/g/b/b" in error["error"]["message"]


async def test_no_frame_is_larger_than_the_edge_has_said() -> None:
    async with text_edge() as edge:
        for number in range(30):
            put(edge, StoreKey("boards", "g", f"{number:02}", f"{number:02}"), 50_000 * (number % 12))
        async with edge.socket("/v1/stream", max_size=LIMIT) as socket:
            client = StreamClient(socket)
            await client.begin({"id": 1, "store": "boards", "group": "g"})

    tokens = [frame.get("token", "") for frame in client.frames if "rows" in frame]
    assert len(client.rows[1, ""]) == 30
    assert len(tokens) > 5
    assert not any(tokens[:-1])


async def test_a_large_order_is_an_error_with_its_id_and_whole_by_rest() -> None:
    order = Order(order_id="12345", customer_id="customer-0001", tracking_number="x" * LIMIT)
    async with text_edge() as edge:
        edge.query.put(StoreKey("orders-by-key", "12345"), order)
        async with edge.socket("/update/orders/12345") as socket, asyncio.timeout(30):
            refused = json.loads(await socket.recv())
        async with edge.client() as client:
            whole = await client.get("/update/orders/12345")

    assert (refused["error"]["code"], refused["error"]["order_id"]) == ("row_too_large", "12345")
    assert whole.json()["data"]["tracking_number"] == order.tracking_number


async def test_no_delta_follows_an_error_of_the_query_service() -> None:
    row = {"text": "x" * 100}
    async with text_edge() as edge, stream_client(edge) as client:
        edge.query.put(LARGE, ParseDict({**row, "n": 1}, Value()))
        await client.say(watch=[watch(LARGE, 1) | {"delta": True}])
        await client.until_current(1)
        edge.query.too_large = frozenset({LARGE})
        edge.query.put(LARGE, ParseDict({**row, "n": 0}, Value()))
        assert "error" in (await client.next())["rows"][0]
        edge.query.too_large = frozenset()
        edge.query.put(LARGE, ParseDict({**row, "n": 2}, Value()))
        [after] = (await client.next())["rows"]

    assert after == {"row": {**row, "n": 2}}
