"""A row that is not of its store's message is an error of that row alone, on sockets and by REST; the others go on."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import structlog.testing
from google.protobuf.struct_pb2 import Value

from statecast.orders.v1.order_pb2 import Order
from testkit.ws_edge.edge import RunningEdge
from testkit.ws_edge.stream import BINARY, stream_client
from ws_edge.auth.gateway import NOTHING
from ws_edge.model.states import StoreKey

ME = "customer-0001"
STORES = """stores:
  - {name: scores, message: json, keeps: members, readers: everyone}
  - {name: score, message: json, keeps: one, readers: everyone}
  - {name: owned, message: json, keeps: members, readers: {field: player}}
  - {name: orders-by-key, message: statecast.orders.v1.Order, keeps: one, readers: {field: customer_id}}
"""
NOT_A_NUMBER = b'{"v": NaN}'
BOARD = {"id": 7, "store": "scores", "group": "g", "interval_ms": 0}
STAFF = {"X-Consumer-Custom-ID": NOTHING, "X-Consumer-Groups": "staff"}


@asynccontextmanager
async def score_edge() -> AsyncIterator[RunningEdge]:
    async with RunningEdge(stores=STORES) as edge:
        yield edge


def score(name: str, store: str = "scores") -> StoreKey:
    return StoreKey(store, "g", name, name)


def put(edge: RunningEdge, key: StoreKey, payload: bytes = b'{"v": 1}') -> None:
    """Applies a row as the bytes that stand in its topic."""
    edge.query.put(key, Value(bool_value=True))
    edge.query.held[key].payload = payload  # type: ignore[union-attr]


async def test_one_bad_row_is_an_error_of_its_own_and_the_others_go_on() -> None:
    async with score_edge() as edge, stream_client(edge) as client:
        for name, payload in (("a", b'{"v": 1}'), ("b", NOT_A_NUMBER), ("c", b'{"v": 3}')):
            put(edge, score(name), payload)
        await client.say(watch=[BOARD])
        began = await client.next()
        put(edge, score("c"), b'{"v": 4}')
        later = await client.next()
        put(edge, score("b"))
        mended = await client.next()

    first, refused, third = began["rows"]
    assert (first["key"], third["key"]) == ("a", "c")
    assert (refused["key"], refused["error"]["code"]) == ("b", "unreadable_row")
    assert "scores/g/b/b" in refused["error"]["message"]
    assert later["rows"][0]["row"] == {"v": 4}
    assert (mended["rows"][0]["key"], mended["rows"][0]["row"]) == ("b", {"v": 1})


async def test_a_row_that_turns_bad_is_told_by_its_key_and_logged_once() -> None:
    async with score_edge() as edge:
        put(edge, score("a"))
        with structlog.testing.capture_logs() as logs:
            async with stream_client(edge) as one, stream_client(edge) as other:
                for client in (one, other):
                    await client.say(watch=[BOARD])
                    await client.until_current(7)
                put(edge, score("a"), NOT_A_NUMBER)
                errors = [(await client.next())["rows"][0]["error"] for client in (one, other)]

    assert [error["code"] for error in errors] == ["unreadable_row"] * 2
    [line] = [line for line in logs if line["event"] == "row_unreadable"]
    assert (line["store"], line["key"], line["log_level"]) == ("scores", "scores/g/a/a", "error")


@pytest.mark.parametrize("subprotocol", [None, BINARY])
@pytest.mark.parametrize(("store", "payload"), [("score", NOT_A_NUMBER), ("orders-by-key", b"\xff\xff\xff")])
async def test_a_bad_key_is_an_error_and_its_watch_goes_on(store: str, payload: bytes, subprotocol: str | None) -> None:
    options = {"headers": STAFF, "subprotocols": subprotocol and [subprotocol]}
    async with score_edge() as edge, stream_client(edge, **options) as client:
        put(edge, StoreKey(store, "k"), payload)
        await client.say(watch=[{"id": 1, "store": store, "group": "k", "interval_ms": 0}])
        [refused] = (await client.next())["rows"]
        put(edge, StoreKey(store, "k"), b'{"v": 1}' if store == "score" else b"")
        [mended] = (await client.next())["rows"]

    assert refused["error"]["code"] == "unreadable_row"
    assert f"{store}/k" in refused["error"]["message"]
    assert mended.keys() <= {"row", "encoded"}


async def test_an_order_that_cannot_be_read_is_an_error_of_its_id() -> None:
    async with score_edge() as edge, edge.socket(headers=edge.headers("", "staff")) as socket:
        put(edge, StoreKey("orders-by-key", "12345"), b"\xff\xff\xff")
        await socket.send(json.dumps({"type": "order_status_updates_request", "data": {"order_id": "12345"}}))
        refused = json.loads(await socket.recv())

    assert (refused["type"], refused["error"]["code"]) == ("error", "unreadable_row")
    assert refused["error"]["order_id"] == "12345"


async def test_who_owns_a_row_that_cannot_be_read_is_unknown_so_strangers_hear_nothing() -> None:
    async with score_edge() as edge, stream_client(edge) as client:
        put(edge, score("a", "owned"), NOT_A_NUMBER)
        put(edge, score("b", "owned"), json.dumps({"player": ME}).encode())
        await client.say(watch=[{"id": 1, "store": "owned", "group": "g"}])
        began = await client.next()

    assert [row["key"] for row in began["rows"]] == ["b"]


async def test_a_page_has_the_other_rows_and_an_error_by_the_key() -> None:
    async with score_edge() as edge, edge.client(ME) as alice:
        for name, payload in (("a", b'{"v": 1}'), ("b", NOT_A_NUMBER)):
            put(edge, score(name), payload)
        for address in ("/v1/stores/scores/rows?group=g", "/v1/stores/scores/rows"):
            answer = await alice.get(address)
            [good, refused] = answer.json()["rows"]

            assert (good["key"], good["row"]) == ("a", {"v": 1})
            assert (refused["key"], refused["error"]["code"]) == ("b", "unreadable_row")


async def test_a_key_that_cannot_be_read_is_no_outage() -> None:
    async with score_edge() as edge, edge.client(ME) as alice:
        put(edge, StoreKey("score", "k"), NOT_A_NUMBER)
        [row] = (await alice.get("/v1/stores/score/rows?group=k")).json()["rows"]

    assert row["error"]["code"] == "unreadable_row"
    assert "score/k" in row["error"]["message"]


async def test_a_row_that_no_frame_can_hold_is_an_error_too(edge: RunningEdge) -> None:
    late = Order(order_id="12345", customer_id=ME)
    late.placed_at.seconds = 10**15  # beyond the year 9999, which JSON cannot say
    edge.query.put(StoreKey("orders-by-key", "12345"), late)
    edge.query.put(StoreKey("orders-by-key", "6"), Order(order_id="6", customer_id=ME))
    async with stream_client(edge) as client:
        await client.say(watch=[{"id": n, "store": "orders-by-key", "group": n} for n in ("6", "12345")])
        await client.until_current(12345)
        await client.until_current(6)
    async with edge.client() as caller:
        [by_rest] = (await caller.get("/v1/stores/orders-by-key/rows?group=12345")).json()["rows"]
        order = await caller.get("/update/orders/12345")

    [refused] = [row for frame in client.frames for row in frame.get("rows", ()) if "error" in row]
    assert refused["error"]["code"] == "unreadable_row"
    assert by_rest["error"]["code"] == "unreadable_row"
    assert order.json()["data"]["order_id"] == "12345"
    assert client.rows[12345, ""] == {}
    assert client.rows[6, ""][""]["order_id"] == "6"
