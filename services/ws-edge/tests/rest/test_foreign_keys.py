"""No interface shows another customer's rows or whether they exist, with or without a token."""

import asyncio
import json
from datetime import UTC, datetime
from itertools import count
from typing import Any

import pytest
from httpx import AsyncClient

from statecast.orders.v1.order_pb2 import Order
from statecast_client.tokens import position_in
from testkit.waiting import scaled
from testkit.ws_edge.edge import FakeQueryService, RunningEdge
from testkit.ws_edge.stream import stream_client
from ws_edge.model.json_rows import decode
from ws_edge.model.states import StoreKey

ORDER = StoreKey("orders-by-key", "12345")
MEMBER = StoreKey("orders-by-customer", "customer-0002", "2024-08-28T12:34:56.123456Z", ORDER.group)
OTHERS_GROUP = {"store": MEMBER.store, "group": MEMBER.group}
OTHERS_ROW = {"store": ORDER.store, "group": ORDER.group}


@pytest.fixture
def edge(keeping_edge: RunningEdge) -> RunningEdge:
    """An edge with all interfaces (sockets, calls and channels), and with an order of customer-0002."""
    for key in (ORDER, MEMBER):
        keeping_edge.query.put(key, Order(order_id=ORDER.group, customer_id="customer-0002"))
    return keeping_edge


async def token_of(edge: RunningEdge, watch: dict[str, Any]) -> str:
    """Returns the token of the row's owner."""
    async with edge.client("customer-0002") as owner:
        page = (await owner.get(f"/v1/stores/{watch['store']}/rows", params={"group": watch["group"]})).json()
    assert page["rows"]
    return str(page["token"])


async def answer_to(socket: Any, watch: dict[str, Any]) -> dict[str, Any]:
    """Watches; returns the parts of all frames of the watch until it is complete or has ended."""
    await socket.send(json.dumps({"watch": [{"id": 1, **watch}]}))
    parts = dict[str, Any]()
    async with asyncio.timeout(scaled(10)):
        while not parts.keys() & {"current", "ended"}:
            frame: dict[str, Any] = json.loads(await socket.recv())
            parts |= frame if "id" in frame else {}
    return parts


@pytest.mark.parametrize("with_token", [False, True])
async def test_a_watch_shows_none_and_ends_where_no_row_is_needed_to_know_it(
    edge: RunningEdge, with_token: bool
) -> None:
    frames = []
    for watch in (OTHERS_GROUP, OTHERS_ROW):
        more = {"token": await token_of(edge, watch)} if with_token else {}
        async with edge.socket("/v1/stream") as socket:
            frames.append(await answer_to(socket, watch | more))

    assert frames[0]["ended"]["code"] == "forbidden"
    assert all("rows" not in frame for frame in frames)


@pytest.mark.parametrize("headers", [{}, {"If-None-Match": '"7-1"'}, {"If-None-Match": "*"}])
@pytest.mark.parametrize(
    "path",
    [
        f"/v1/stores/{MEMBER.store}/rows?group={MEMBER.group}",
        f"/v1/stores/{MEMBER.store}/rows",
        "/v1/shards",
    ],
)
async def test_calls_are_refused(edge: RunningEdge, alice: AsyncClient, path: str, headers: dict[str, str]) -> None:
    answer = await alice.get(path, headers=headers)

    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "forbidden")
    assert "ETag" not in answer.headers


@pytest.mark.parametrize("kind", ["another's", "too large", "deleted", "unknown"])
async def test_a_token_does_not_tell_whether_a_hidden_row_exists(
    edge: RunningEdge, alice: AsyncClient, kind: str
) -> None:
    group = ORDER.group if kind in ("another's", "too large") else kind
    edge.query.too_large = frozenset({ORDER} if kind == "too large" else ())
    edge.query.put(StoreKey(ORDER.store, "deleted"), Order(order_id="deleted", customer_id="customer-0002"))
    edge.query.delete(StoreKey(ORDER.store, "deleted"))
    newest = edge.query.put(StoreKey(ORDER.store, "1"), Order(order_id="1", customer_id="customer-0003"))
    page = (await alice.get(f"/v1/stores/{ORDER.store}/rows", params={"group": group})).json()
    async with edge.socket("/v1/stream") as socket:
        frame = await answer_to(socket, {"store": ORDER.store, "group": group})

    assert not page["rows"]
    assert [position_in(each["token"])[0] for each in (page, frame)] == [newest, newest]


@pytest.mark.parametrize("kind", ["another's", "too large", "deleted", "unknown"])
async def test_a_watch_that_resumes_does_not_tell_whether_a_hidden_row_has_changed(
    edge: RunningEdge, alice: AsyncClient, kind: str
) -> None:
    group = "9" if kind == "unknown" else ORDER.group
    page = (await alice.get(f"/v1/stores/{ORDER.store}/rows", params={"group": group})).json()
    edge.query.put(ORDER, Order(order_id=ORDER.group, customer_id="customer-0002", tracking_number="T1"))
    edge.query.too_large = frozenset({ORDER} if kind == "too large" else ())
    if kind == "deleted":
        edge.query.delete(ORDER)
    async with edge.socket("/v1/stream") as socket:
        frame = await answer_to(socket, {"store": ORDER.store, "group": group, "token": page["token"]})
    async with edge.socket(f"/update/orders/{group}?token={page['token']}") as socket:
        order = json.loads(await socket.recv())

    assert "rows" not in frame
    assert "resumed" not in frame["watching"]
    assert order["data"]["status"] == "Unknown"


@pytest.mark.parametrize(
    "asked",
    [{}, {"fields": ["order_id"]}, {"fields": ["colour"]}, {"sort_from": "b", "sort_to": "a"}, {"group": "a\0"}],
    ids=str,
)
async def test_nothing_tells_a_store_for_staff_from_one_that_does_not_exist(
    edge: RunningEdge, alice: AsyncClient, asked: dict[str, Any]
) -> None:
    channel = (await alice.post("/v1/channels")).json()["channel"]
    answers = []
    for store in ("orders-by-item", "orders-by-itm"):
        watch = {"store": store, "group": "1", **asked}
        step = OTHERS_ROW | {"steps": [{"store": store, "group_field": "order_id", "fields": asked.get("fields", [])}]}
        page = await alice.get(f"/v1/stores/{store}/rows", params={"group": "1", **asked})
        named = await alice.put(f"/v1/channels/{channel}/watches/a", json={"watch": watch})
        refused = [each.json()["error"] for each in (page, named)]
        for each in (watch, step):
            async with edge.socket("/v1/stream") as socket:
                refused.append((await answer_to(socket, each))["ended"])
        answers.append([(each["code"], each["message"].replace(store, "it").split(";")[0]) for each in refused])

    assert answers[0] == answers[1]
    assert {code for code, _ in answers[0]} == {"unknown_store"}
    assert "orders-by-item" not in str(answers)


HIDING = """
stores:
  - {name: games, message: json, keeps: members, readers: everyone, private: [{path: hand, owner: player}]}
  - {name: orders-by-key, message: statecast.orders.v1.Order, keeps: one, readers: everyone,
     private: [{path: tracking_number, owner: customer_id}]}
"""
GAMES = {"store": "games", "group": "1", "times": True}
PARCEL = {"store": "orders-by-key", "group": "1", "times": True}


def play(query: FakeQueryService, group: str, hand: str, score: int, *names: str) -> None:
    """Changes some games and an order of Bob, each a second after the one before; one game lacks the private field."""
    commits = (datetime.fromtimestamp(1_750_000_000 + query.offset + number, UTC) for number in count())
    for name in names:
        game = {"Hand": hand} if name == "lost" else {"player": "bob", "hand": hand, "score": score}
        query.put(StoreKey("games", group, name, name), decode(json.dumps(game).encode()), next(commits))
    order = Order(order_id=group, customer_id="bob", tracking_number=hand, total_cents=score)
    query.put(StoreKey("orders-by-key", group), order, next(commits))


async def trace_of(hidden_group: str) -> list[Any]:
    """Returns all that a stranger gets of group 1, after the private part of rows of a group has changed."""
    trace = list[Any]()
    async with RunningEdge(stores=HIDING) as edge, edge.client("alice") as alice:
        play(edge.query, "1", "AK", 0, "a", "b", "lost")
        async with stream_client(edge) as client:
            await client.say(watch=[{"id": 1, **GAMES}, {"id": 2, **PARCEL}])
            while client.current != {1, 2}:
                await client.next()
            tokens = client.tokens[1, ""], client.tokens[2, ""]
            play(edge.query, hidden_group, "QJ", 0, "a", "lost")
            play(edge.query, "1", "98", 1, "b")
            while client.rows[1, ""]["b"]["score"] == 0 or client.rows[2, ""][""]["total_cents"] == "0":
                await client.next()
            trace += client.frames
        async with stream_client(edge) as client:
            await client.say(watch=[{"id": 1, **GAMES, "token": tokens[0]}, {"id": 2, **PARCEL, "token": tokens[1]}])
            while client.current != {1, 2}:
                await client.next()
            trace += client.frames
        for path in ("/v1/stores/games/rows?group=1", "/v1/stores/orders-by-key/rows?group=1", "/update/orders/1"):
            answer = await alice.get(path)
            trace.append((answer.json(), answer.headers.get("ETag")))
        async with edge.socket("/update/orders/1") as socket:
            trace.append(json.loads(await socket.recv()))
    return sorted(each for each in map(str, trace) if "'hello'" not in each and "'ping'" not in each)


async def test_a_change_of_a_private_field_leaves_no_trace() -> None:
    assert await trace_of("1") == await trace_of("2")


@pytest.mark.parametrize("others", [False, True])
async def test_rows_of_others_count_for_no_page(others: bool) -> None:
    stores = "stores: [{name: bets, message: json, keeps: members, readers: {field: owner}}]"
    pages, token = list[list[str]](), ""
    async with RunningEdge(stores=stores) as edge, edge.client("alice") as alice:
        for name in "abcdefghi":
            owner = "alice" if name in "bdf" else "bob"
            if owner == "alice" or others:
                document = json.dumps({"name": name, "owner": owner})
                edge.query.put(StoreKey("bets", "g", name, name), decode(document.encode()))
        while token or not pages:
            more = {"page_token": token} if token else {}
            page = (await alice.get("/v1/stores/bets/rows", params={"group": "g", "limit": 2, **more})).json()
            pages.append([row["row"]["name"] for row in page["rows"]])
            token = page["next_page_token"]

    assert pages == [["b", "d"], ["f"]]


async def test_a_refusal_leaves_no_watch_behind(edge: RunningEdge) -> None:
    async with edge.socket("/v1/stream") as socket:
        before = edge.parts.hub.watches
        await answer_to(socket, OTHERS_GROUP)

        assert edge.parts.hub.watches == before
