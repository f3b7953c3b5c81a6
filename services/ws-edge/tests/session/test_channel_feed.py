"""A socket that is attached to a channel gets what is added to it, wherever the addition is made."""

import json

import pytest
from httpx import AsyncClient
from websockets.exceptions import ConnectionClosed, InvalidStatus

from statecast.orders.v1.order_pb2 import Order, OrderStatus
from statecast.push.v1.push_pb2 import ClientFrame, ServerFrame
from testkit.ws_edge.channels import add, begin, channel_of, next_frame, order
from testkit.ws_edge.edge import RunningEdge, until
from ws_edge.codec.stream_codec import BINARY_SUBPROTOCOL
from ws_edge.model.states import StoreKey

STORE = "orders-by-key"


@pytest.fixture
def edge(keeping_edge: RunningEdge) -> RunningEdge:
    """All calls here go to an edge that can keep things."""
    return keeping_edge


def put(edge: RunningEdge, order_id: str, status: str = "PLACED") -> int:
    row = Order(order_id=order_id, customer_id="customer-0001", status=OrderStatus.Value(f"ORDER_STATUS_{status}"))
    return edge.query.put(StoreKey(STORE, order_id), row)


async def test_nothing_comes_before_begin_and_then_all_of_the_channel(edge: RunningEdge, alice: AsyncClient) -> None:
    put(edge, "a")
    put(edge, "b")
    channel = await channel_of(alice, order("a"), order("b"))
    async with edge.socket(f"{channel}/stream") as socket:
        attached = await begin(socket)
        first, second = await next_frame(socket, "subscribed"), await next_frame(socket, "subscribed")

    assert (attached["channel"], attached["subscriptions"]) == (channel.rpartition("/")[2], 2)
    assert "expires_at" in attached
    assert (first["id"], second["id"]) == ("b", "b")
    assert {first["subscribed"]["key"]["group"], second["subscribed"]["key"]["group"]} == {"a", "b"}


async def test_later_additions_and_removals_follow(edge: RunningEdge, alice: AsyncClient) -> None:
    put(edge, "a")
    channel = await channel_of(alice)
    async with edge.socket(f"{channel}/stream") as socket:
        await begin(socket)
        await add(alice, channel, order("a"))
        snapshot = await next_frame(socket, "changed")
        put(edge, "a", "PAID")
        change = await next_frame(socket, "changed")
        await alice.delete(f"{channel}/subscriptions", params={"store": STORE, "group": "a"})
        ended = await next_frame(socket, "unsubscribed")
        await until(lambda: StoreKey(STORE, "a") not in edge.parts.hub._watches)

    assert snapshot["changed"]["row"]["status"] == "ORDER_STATUS_PLACED"
    assert change["changed"]["row"]["status"] == "ORDER_STATUS_PAID"
    assert ended["unsubscribed"]["key"]["group"] == "a"


async def test_another_interval_repeats_nothing(edge: RunningEdge, alice: AsyncClient) -> None:
    put(edge, "a")
    channel = await channel_of(alice, order("a"))
    async with edge.socket(f"{channel}/stream") as socket:
        await begin(socket)
        await next_frame(socket, "changed")
        await add(alice, channel, order("a", interval_ms=0))
        subscribed = await next_frame(socket, "subscribed")
        newer = put(edge, "a", "PAID")
        change = await next_frame(socket)

    assert (subscribed["subscribed"]["start"], "interval_ms" in subscribed["subscribed"]) == ("START_RECOVERED", False)
    assert change["changed"]["position"]["offset"] == str(newer)


async def test_the_channel_goes_on_at_another_edge_with_positions(alice: AsyncClient, edge: RunningEdge) -> None:
    offset = put(edge, "a")
    channel = await channel_of(alice, order("a"))
    async with (
        RunningEdge(kafka=True, beside=edge, min_interval_ms=20, tick_ms=5) as other,
        other.socket(f"{channel}/stream") as socket,
    ):
        held = {"store": STORE, "key": {"group": "a"}, "position": {"epoch": "7", "offset": str(offset)}}
        await begin(socket, after=[held])
        subscribed = await next_frame(socket, "subscribed")
        newer = put(edge, "a", "PAID")
        change = await next_frame(socket)

    assert subscribed["subscribed"]["start"] == "START_RECOVERED"
    assert change["changed"]["position"]["offset"] == str(newer)


async def test_a_key_that_the_client_watches_itself_stays_as_it_is(edge: RunningEdge, alice: AsyncClient) -> None:
    put(edge, "a")
    put(edge, "z")
    channel = await channel_of(alice, order("a"), order("z"))
    async with edge.socket(f"{channel}/stream") as socket:
        await next_frame(socket, "channel_attached")
        await socket.send(json.dumps({"id": "own", "subscribe": {"store": STORE, "key": {"group": "a"}}}))
        await next_frame(socket, "changed")
        await socket.send(json.dumps({"id": "b", "begin": {}}))
        subscribed = await next_frame(socket, "subscribed")

    assert subscribed["subscribed"]["key"]["group"] == "z"


async def test_the_binary_codec_does_the_same(edge: RunningEdge, alice: AsyncClient) -> None:
    put(edge, "a")
    channel = await channel_of(alice, order("a"))
    path = f"{channel}/stream"
    async with edge.socket(path, subprotocols=[BINARY_SUBPROTOCOL]) as socket:
        frames = [ServerFrame.FromString(await socket.recv(decode=False))]
        request = ClientFrame(id="b")
        request.begin.SetInParent()
        await socket.send(request.SerializeToString())
        frames += [ServerFrame.FromString(await socket.recv(decode=False)) for _ in range(2)]

    assert [frame.WhichOneof("event") for frame in frames] == ["channel_attached", "subscribed", "changed"]


async def test_a_deleted_channel_closes_its_sockets(edge: RunningEdge, alice: AsyncClient) -> None:
    channel = await channel_of(alice)
    async with edge.socket(f"{channel}/stream") as socket:
        await begin(socket)
        await until(lambda: edge.parts.hub.unique_keys == 2)
        await alice.delete(channel)
        with pytest.raises(ConnectionClosed) as closing:
            await next_frame(socket, "nothing of the kind")

    assert closing.value.rcvd is not None
    assert closing.value.rcvd.code == 4404
    await until(lambda: edge.parts.hub.unique_keys == 0)


async def test_an_expired_channel_closes_its_sockets() -> None:
    async with RunningEdge(kafka=True, channel_lifetime_s=0.05) as edge:
        headers = edge.headers()
        async with AsyncClient(base_url=f"http://{edge.address}", headers=headers, verify=False) as client:
            channel = await channel_of(client)
        async with edge.socket(f"{channel}/stream") as socket:
            edge.wall_clock.now += 1
            with pytest.raises(ConnectionClosed) as closing:
                await next_frame(socket, "nothing of the kind")

    assert closing.value.rcvd is not None
    assert closing.value.rcvd.code == 4404


async def test_a_foreign_or_unknown_channel_is_not_attached(edge: RunningEdge, alice: AsyncClient) -> None:
    channel = await channel_of(alice)
    for path, consumer, status in (
        (f"{channel}/stream", "customer-0002", 403),
        (f"/v1/channels/{'A' * 22}/stream", "customer-0001", 404),
        ("/v1/channels//stream", "customer-0001", 404),
    ):
        with pytest.raises(InvalidStatus) as refusal:
            async with edge.socket(path, consumer):
                pytest.fail("the socket was opened")

        assert refusal.value.response.status_code == status
    assert edge.parts.hub.unique_keys == 0


async def test_begin_without_a_channel_is_refused(edge: RunningEdge) -> None:
    async with edge.socket("/v1/stream") as socket:
        await socket.send(json.dumps({"id": "b", "begin": {}}))
        frame = await next_frame(socket)

    assert (frame["id"], frame["error"]["code"]) == ("b", "malformed_frame")
