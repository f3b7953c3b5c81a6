"""A socket that is attached to a channel is fed the ranges that are added to it, as it would be by its own requests."""

import json
from typing import Any

import pytest
from httpx import AsyncClient
from websockets.asyncio.client import ClientConnection

from statecast.orders.v1.order_pb2 import Order
from statecast.push.v1.push_pb2 import ClientFrame, ServerFrame
from statecast.push.v1.range_pb2 import Range, RangePosition
from testkit.ws_edge.channels import add, begin, channel_of, next_frame, order, orders_of
from testkit.ws_edge.edge import RunningEdge, until
from ws_edge.codec.stream_codec import BINARY_SUBPROTOCOL
from ws_edge.model.states import StoreKey

ME = "customer-0001"
MINE = {"store": "orders-by-customer", "group": ME}
IN_FORCE = MINE | {"limit": 100}


@pytest.fixture
def edge(keeping_edge: RunningEdge) -> RunningEdge:
    """All calls here go to an edge that can keep things."""
    return keeping_edge


def member(name: str) -> StoreKey:
    return StoreKey("orders-by-customer", ME, name, name)


def put(edge: RunningEdge, name: str) -> None:
    edge.query.put(member(name), Order(order_id=name, customer_id=ME))


async def watched(socket: ClientConnection) -> dict[str, Any]:
    return dict((await next_frame(socket, "range_watched"))["range_watched"])


async def change(socket: ClientConnection) -> tuple[str, str, Any]:
    """What has happened, to which member, and from where the range can be resumed after it."""
    event = (await next_frame(socket))["range_changed"]
    return event["change"].rpartition("_")[2], event["key"]["member"], event.get("through")


async def test_a_channel_holds_ranges_and_keys(edge: RunningEdge, alice: AsyncClient) -> None:
    put(edge, "a")
    channel = await channel_of(alice, order("12345"), orders_of(ME))
    async with edge.socket(f"{channel}/stream") as socket:
        attached = await begin(socket)
        kinds = {kind for _ in range(4) for kind in await next_frame(socket) if kind != "id"}

    assert attached["subscriptions"] == 2
    assert kinds == {"subscribed", "removed", "range_watched", "range_changed"}


async def test_later_additions_and_removals_follow(edge: RunningEdge, alice: AsyncClient) -> None:
    put(edge, "a")
    channel = await channel_of(alice)
    async with edge.socket(f"{channel}/stream") as socket:
        await begin(socket)
        await add(alice, channel, orders_of(ME))
        started = await next_frame(socket)
        changes = [await change(socket)]
        put(edge, "b")
        changes.append(await change(socket))
        put(edge, "a")
        changes.append(await change(socket))
        edge.query.delete(member("b"))
        changes.append(await change(socket))
        await alice.delete(f"{channel}/subscriptions/range", params=MINE)
        ended = await next_frame(socket)
        await until(lambda: edge.parts.hub.unique_keys == 2)  # the channel's revision and the consumer's revocation

    assert (started["id"], started["range_watched"]["range"]) == ("b", IN_FORCE)
    assert [(what, name) for what, name, _ in changes] == [
        ("ENTERED", "a"),
        ("ENTERED", "b"),
        ("CHANGED", "a"),
        ("LEFT", "b"),
    ]
    assert ended["range_unwatched"]["range"] == IN_FORCE


async def test_the_range_goes_on_at_another_edge_with_what_was_missed(alice: AsyncClient, edge: RunningEdge) -> None:
    for name in ("a", "b"):
        put(edge, name)
    channel = await channel_of(alice, orders_of(ME))
    async with edge.socket(f"{channel}/stream") as socket:
        await begin(socket)
        await watched(socket)
        _, (_, _, through) = await change(socket), await change(socket)
    edge.query.delete(member("a"))
    put(edge, "c")
    async with (
        RunningEdge(kafka=True, beside=edge, min_interval_ms=20, tick_ms=5) as other,
        other.socket(f"{channel}/stream") as socket,
    ):
        await begin(socket, after_ranges=[{"range": IN_FORCE, "through": through}])
        started = await watched(socket)
        missed = [await change(socket), await change(socket)]

    assert (started["start"], started["members"]) == ("START_RECOVERED", 2)
    assert [(what, name) for what, name, _ in missed] == [("LEFT", "a"), ("CHANGED", "c")]


async def test_another_interval_repeats_nothing(edge: RunningEdge, alice: AsyncClient) -> None:
    put(edge, "a")
    channel = await channel_of(alice, orders_of(ME))
    async with edge.socket(f"{channel}/stream") as socket:
        await begin(socket)
        await watched(socket)
        await change(socket)
        await add(alice, channel, orders_of(ME, interval_ms=0))
        started = await watched(socket)
        put(edge, "b")
        what, name, _ = await change(socket)

    assert (started["start"], "members" in started, "interval_ms" in started) == ("START_RECOVERED", False, False)
    assert (what, name) == ("ENTERED", "b")


async def test_a_range_that_the_client_watches_itself_stays_as_it_is(edge: RunningEdge, alice: AsyncClient) -> None:
    channel = await channel_of(alice, orders_of(ME), orders_of(ME, sort_from="n"))
    async with edge.socket(f"{channel}/stream") as socket:
        await next_frame(socket, "channel_attached")
        await socket.send(json.dumps({"id": "own", "watch_range": {"range": MINE}}))
        await watched(socket)
        await socket.send(json.dumps({"id": "b", "begin": {}}))
        started = await watched(socket)

    assert started["range"]["sort_from"] == "n"


async def test_ranges_that_are_one_when_their_limits_are_capped_are_watched_once() -> None:
    async with (
        RunningEdge(kafka=True, max_members=5, min_interval_ms=20, tick_ms=5) as edge,
        AsyncClient(base_url=f"http://{edge.address}", headers=edge.headers(), verify=False) as client,
    ):
        put(edge, "a")
        channel = await channel_of(client, orders_of(ME, limit=10), orders_of(ME, limit=20))
        async with edge.socket(f"{channel}/stream") as socket:
            await begin(socket)
            started = await watched(socket)
            await change(socket)
            await client.delete(f"{channel}/subscriptions/range", params=MINE | {"limit": 10})
            put(edge, "b")
            following = await change(socket)

    assert started["range"] == MINE | {"limit": 5}
    assert following[:2] == ("ENTERED", "b")


async def test_the_ranges_of_a_socket_are_limited_with_those_of_its_channel() -> None:
    async with (
        RunningEdge(kafka=True, max_ranges=1, min_interval_ms=20, tick_ms=5) as edge,
        AsyncClient(base_url=f"http://{edge.address}", headers=edge.headers(), verify=False) as client,
    ):
        channel = await channel_of(client, orders_of(ME))
        async with edge.socket(f"{channel}/stream") as socket:
            await next_frame(socket, "channel_attached")
            await socket.send(json.dumps({"id": "own", "watch_range": {"range": MINE | {"sort_from": "n"}}}))
            await watched(socket)
            await socket.send(json.dumps({"id": "b", "begin": {}}))
            refused = await next_frame(socket, "error")

    assert (refused["id"], refused["error"]["code"]) == ("b", "too_many_subscriptions")


async def test_the_binary_codec_does_the_same(edge: RunningEdge, alice: AsyncClient) -> None:
    put(edge, "a")
    channel = await channel_of(alice, orders_of(ME))
    request = ClientFrame(id="b")
    held = RangePosition(range=Range(store="orders-by-customer", group=ME, limit=100))
    held.through.epoch, held.through.offset = 7, edge.query.offset
    request.begin.after_ranges.append(held)
    async with edge.socket(f"{channel}/stream", subprotocols=[BINARY_SUBPROTOCOL]) as socket:
        await socket.recv()
        await socket.send(request.SerializeToString())
        started = ServerFrame.FromString(await socket.recv(decode=False)).range_watched

    assert (started.start, started.members) == (2, 0)
    assert started.range == held.range


async def test_a_begin_that_names_no_range_is_refused(edge: RunningEdge, alice: AsyncClient) -> None:
    channel = await channel_of(alice, orders_of(ME))
    async with edge.socket(f"{channel}/stream") as socket:
        await begin(socket, after_ranges=[{"range": {"store": "orders-by-key", "group": "1"}}])
        refused = await next_frame(socket)

    assert (refused["id"], refused["error"]["code"]) == ("b", "malformed_frame")
