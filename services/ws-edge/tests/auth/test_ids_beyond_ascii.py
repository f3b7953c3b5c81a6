"""Ids, names and groups are UTF-8 from the gateway to the rows, and are compared exactly."""

import asyncio
import json
import unicodedata
from collections.abc import AsyncIterator
from urllib.parse import quote

import pytest
from google.protobuf import json_format
from google.protobuf.struct_pb2 import Value
from websockets.asyncio.client import ClientConnection

from statecast.orders.v1.order_pb2 import Order
from testkit.ws_edge.edge import RunningEdge, refusal_of
from testkit.ws_edge.fake_query_service import FakeWriter
from ws_edge.channels.revocations import RevocationLog
from ws_edge.model.states import StoreKey

IDS = ["kundé-ä", "客户-7", "\U0001f682-1", unicodedata.normalize("NFD", "kundé-ä"), "\u00a0a", "Ã¤"]
ORDER = StoreKey("orders-by-key", "1")
STORES = """
stores:
  - {name: orders-by-key, message: statecast.orders.v1.Order, keeps: one, readers: {field: customer_id}}
  - {name: orders-by-customer, message: statecast.orders.v1.Order, keeps: members,
     readers: {field: customer_id, group: true}}
  - {name: games, message: json, keeps: one, readers: everyone, private: [{path: hands, owner: player}]}
"""


@pytest.fixture
async def utf8_edge() -> AsyncIterator[RunningEdge]:
    async with RunningEdge(kafka=True, stores=STORES) as edge:
        yield edge


async def own_row(socket: ClientConnection) -> str:
    """Returns the customer of the first row of a range."""
    async with asyncio.timeout(30):
        while "rows" not in (frame := json.loads(await socket.recv())):
            assert "ended" not in frame
    return str(frame["rows"][0]["row"]["customer_id"])


def put_rows(edge: RunningEdge, consumer: str) -> StoreKey:
    order = Order(order_id="1", customer_id=consumer)
    member = StoreKey("orders-by-customer", consumer, "1", "1")
    edge.query.put(ORDER, order)
    edge.query.put(member, order)
    hands = [{"player": consumer, "card": "ace"}, {"player": "customer-0002", "card": "king"}]
    edge.query.put(StoreKey("games", "g"), json_format.ParseDict({"hands": hands}, Value()))
    return member


@pytest.mark.parametrize("consumer", IDS)
async def test_calls_show_a_consumer_its_own_rows(utf8_edge: RunningEdge, consumer: str) -> None:
    put_rows(utf8_edge, consumer)
    async with utf8_edge.client(consumer) as client:
        who = (await client.get("/v1/consumer")).json()
        one = await client.get("/v1/stores/orders-by-key/rows?group=1")
        group = await client.get(f"/v1/stores/orders-by-customer/rows?group={quote(consumer)}")
        game = (await client.get("/v1/stores/games/rows?group=g")).json()
    other_form = unicodedata.normalize("NFC" if unicodedata.is_normalized("NFD", consumer) else "NFD", consumer)
    async with utf8_edge.client("kunde-a" if other_form == consumer else other_form) as other:
        refused = [await other.get("/v1/stores/orders-by-key/rows?group=1"), await other.get(str(group.request.url))]

    assert who == {"id": consumer, "name": consumer, "staff": False}
    assert one.status_code == 200
    assert [state["row"]["customer_id"] for state in group.json()["rows"]] == [consumer]
    assert "ace" in json.dumps(game)
    assert "king" not in json.dumps(game)
    assert [answer.status_code for answer in refused] == [200, 403]
    assert refused[0].json()["rows"] == []


@pytest.mark.parametrize("consumer", IDS[:3])
async def test_sockets_channels_and_tickets_are_its_own_and_end_when_it_is_revoked(
    utf8_edge: RunningEdge, consumer: str
) -> None:
    member = put_rows(utf8_edge, consumer)
    watch = {"store": member.store, "group": consumer}
    async with utf8_edge.client(consumer) as client:
        channel = (await client.post("/v1/channels")).json()["channel"]
        added = await client.put(f"/v1/channels/{channel}/watches/a", json={"watch": watch})
        ticket = (await client.post("/v1/tickets")).json()["ticket"]
    offers = ("statecast.push.v2+json", f"statecast.ticket.{ticket}")
    async with (
        utf8_edge.socket("/v1/stream", consumer) as socket,
        utf8_edge.stranger_socket("/v1/tickets/stream", offers) as browser,
    ):
        sockets = socket, browser
        for each in sockets:
            await each.send(json.dumps({"watch": [{"id": 1, **watch}]}))
            assert await own_row(each) == consumer
        await RevocationLog(FakeWriter(utf8_edge.query), utf8_edge.wall_clock).revoke(consumer)
        for each in sockets:
            await asyncio.wait_for(each.wait_closed(), 30)
        codes = [each.close_code for each in sockets]
        await refusal_of(utf8_edge.socket("/v1/stream", consumer))

    assert added.status_code == 200
    assert codes == [4403] * 2


@pytest.mark.parametrize("path", ["/update/orders/kund%e9", "/v1/stores/%ed%a0%80/rows", "/docs?x=%ff"])
async def test_an_address_that_is_not_utf_8_names_no_other_key(utf8_edge: RunningEdge, path: str) -> None:
    async with utf8_edge.client(IDS[0]) as client:
        answer = await client.get(path)
    refusal = await refusal_of(utf8_edge.socket(path))

    assert answer.status_code == refusal.status_code == 400
    assert answer.json()["error"]["code"] == "malformed_frame"


async def test_a_group_is_staff_by_its_exact_name(utf8_edge: RunningEdge) -> None:
    put_rows(utf8_edge, IDS[0])
    for groups, rows in (("staff\u00a0", 0), ("\u3000staff", 0), ("é, staff", 1)):
        async with utf8_edge.client("customer-0002", groups) as client:
            assert len((await client.get("/v1/stores/orders-by-key/rows?group=1")).json()["rows"]) == rows


@pytest.mark.parametrize("header", ["X-Consumer-Custom-ID", "X-Consumer-Groups"])
async def test_what_is_not_utf_8_is_refused(utf8_edge: RunningEdge, header: str) -> None:
    headers = utf8_edge.headers() | {header: "kund\xe9"}
    raw = {name.encode(): value.encode("latin-1") for name, value in headers.items()}
    async with utf8_edge.client(headers=raw) as client:
        answer = await client.get("/v1/consumer")
    refusal = await refusal_of(utf8_edge.socket("/v1/stream", headers={header: "kund\xe9"}))

    assert answer.status_code == refusal.status_code == 403
    assert "is not UTF-8" in answer.text
