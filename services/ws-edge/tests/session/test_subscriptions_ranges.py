"""Ranges over a real socket, in JSON and in binary, with a scripted query service behind the edge."""

import gc
import json
from typing import Any

from google.protobuf import json_format
from websockets.asyncio.client import ClientConnection

from statecast.orders.v1.order_pb2 import Order
from statecast.push.v1.push_pb2 import ClientFrame, ServerFrame
from statecast.push.v1.range_pb2 import MemberChange, Range, WatchRange
from statecast.push.v1.subscription_pb2 import Start
from testkit.ws_edge.edge import RunningEdge, until
from ws_edge.codec.stream_codec import BINARY_SUBPROTOCOL, MAX_FORMS
from ws_edge.model.states import KeyState, StoreKey

ME = "customer-0001"
MINE = {"store": "orders-by-customer", "group": ME}


def key(name: str, sort: str = "", group: str = ME) -> StoreKey:
    return StoreKey("orders-by-customer", group, sort or name, name)


def order(name: str, owner: str = ME) -> Order:
    return Order(order_id=name, customer_id=owner)


async def ask(socket: ClientConnection, **request: Any) -> None:
    await socket.send(json.dumps(request))


async def watch(socket: ClientConnection, frame_id: str = "1", **request: Any) -> dict[str, Any]:
    """Watches my own orders, and returns the frame that confirms it."""
    range_request = {"range": MINE, "interval_ms": 0} | request
    await ask(socket, id=frame_id, watch_range=range_request)
    frame = await receive(socket)
    return dict(frame["range_watched"])


async def receive(socket: ClientConnection) -> dict[str, Any]:
    frame: dict[str, Any] = json.loads(await socket.recv())
    return frame


async def change(socket: ClientConnection) -> dict[str, Any]:
    return dict((await receive(socket))["range_changed"])


async def test_members_enter_change_and_leave_in_order(edge: RunningEdge) -> None:
    edge.query.put(key("a"), order("a"))
    async with edge.socket("/v1/stream") as socket:
        started = await watch(socket)
        changes = [await change(socket)]
        edge.query.put(key("b"), order("b"))
        changes.append(await change(socket))
        edge.query.put(key("a"), order("a"))
        changes.append(await change(socket))
        edge.query.delete(key("b"))
        changes.append(await change(socket))

    assert started["range"] == MINE | {"limit": 100}
    assert (started["start"], started["members"]) == ("START_SNAPSHOT", 1)
    assert [(each["change"].rpartition("_")[2], each["key"]["member"]) for each in changes] == [
        ("ENTERED", "a"),
        ("ENTERED", "b"),
        ("CHANGED", "a"),
        ("LEFT", "b"),
    ]
    assert [int(each["through"]["offset"]) for each in changes] == [1, 2, 3, 4]
    assert changes[0]["row"]["order_id"] == "a"
    assert "row" not in changes[3]


async def test_a_range_is_resumed_on_a_new_socket(edge: RunningEdge) -> None:
    for name in ("a", "b"):
        edge.query.put(key(name), order(name))
    async with edge.socket("/v1/stream") as socket:
        await watch(socket)
        frames = [await change(socket), await change(socket)]
    edge.query.delete(key("a"))
    edge.query.put(key("c"), order("c"))
    async with edge.socket("/v1/stream") as socket:
        resumed = await watch(socket, after=frames[-1]["through"])
        missed = [await change(socket), await change(socket)]

    assert ["through" in frame for frame in frames] == [False, True]
    assert (resumed["start"], resumed["members"]) == ("START_RECOVERED", 2)
    assert [(each["change"].rpartition("_")[2], each["key"]["member"]) for each in missed] == [
        ("LEFT", "a"),
        ("CHANGED", "c"),
    ]


async def test_any_number_of_sockets_cost_one_long_poll_of_the_range(edge: RunningEdge) -> None:
    edge.query.put(key("a"), order("a"))
    async with edge.socket("/v1/stream") as one, edge.socket("/v1/stream") as other:
        for socket in (one, other):
            await watch(socket)
            await change(socket)
        await until(lambda: edge.query.waiting == 1)
        polls = edge.query.ranges[ME]
        edge.query.put(key("a"), order("a"))
        frames = [await change(one), await change(other)]
        await until(lambda: edge.query.waiting == 1)

    assert frames[0] == frames[1]
    assert edge.query.ranges[ME] == polls + 1


async def test_an_unwatched_range_is_silent_and_leaves_nothing_behind(edge: RunningEdge) -> None:
    async with edge.socket("/v1/stream") as socket:
        await watch(socket)
        await ask(socket, id="2", unwatch_range={"range": MINE})
        ended = await receive(socket)
        edge.query.put(key("a"), order("a"))
        await ask(socket, id="3", unwatch_range={"range": MINE})
        again = await receive(socket)

    assert ended == {"id": "2", "range_unwatched": {"range": MINE | {"limit": 100}}}
    assert again["id"] == "3"
    await until(lambda: edge.parts.hub.unique_keys == 0)


async def test_a_range_that_is_watched_again_begins_again(edge: RunningEdge) -> None:
    edge.query.put(key("a"), order("a"))
    async with edge.socket("/v1/stream") as socket:
        for frame_id in ("1", "2"):
            assert (await watch(socket, frame_id))["members"] == 1
            assert (await change(socket))["key"]["member"] == "a"

    await until(lambda: edge.parts.hub.subscriptions == 0)


async def test_watching_again_and_again_leaves_few_frames_on_a_row(edge: RunningEdge) -> None:
    """The row stays, and each position of its range makes another frame of it."""
    edge.query.put(key("a"), order("a"))
    throughs: set[str] = set()
    async with edge.socket("/v1/stream") as observer, edge.socket("/v1/stream") as socket:
        await watch(observer, interval_ms=20)
        while len(throughs) < 10 * MAX_FORMS:
            edge.query.put(key("b", group="customer-0002"), order("b"))
            await watch(socket, interval_ms=20)
            throughs.add((await change(socket))["through"]["offset"])
        rows = [each for each in gc.get_objects() if type(each) is KeyState and each.key == key("a")]

    assert [len(row.frames) <= MAX_FORMS for row in rows] == [True]


async def test_binary_frames_say_the_same(edge: RunningEdge) -> None:
    edge.query.put(key("a"), order("a"))
    request = ClientFrame(
        id="1", watch_range=WatchRange(range=Range(store="orders-by-customer", group=ME, limit=5_000), interval_ms=0)
    )
    async with edge.socket("/v1/stream", subprotocols=[BINARY_SUBPROTOCOL]) as socket:
        await socket.send(request.SerializeToString())
        frames = [ServerFrame.FromString(bytes(await socket.recv(decode=False))) for _ in range(2)]

    assert frames[0].range_watched.start == Start.START_SNAPSHOT
    assert frames[0].range_watched.range.limit == 1000
    assert frames[1].range_changed.change == MemberChange.MEMBER_CHANGE_ENTERED
    row = Order()
    assert frames[1].range_changed.row.Unpack(row)
    assert row.order_id == "a"
    assert "range_changed" in json_format.MessageToDict(frames[1], preserving_proto_field_name=True)


async def refusal(edge: RunningEdge, **fields: Any) -> dict[str, Any]:
    async with edge.socket("/v1/stream") as socket:
        await ask(socket, id="9", watch_range={"range": MINE | fields})
        frame = await receive(socket)
    assert frame["id"] == "9"
    return dict(frame["error"])


async def test_a_refused_request_says_why(edge: RunningEdge) -> None:
    texts: dict[str, dict[str, Any]] = {
        "the store orders-by-item is for staff only": {"store": "orders-by-item", "group": "i"},
        "belongs to somebody else": {"group": "customer-0002"},
        "has one value per group": {"store": "orders-by-key"},
        "names no group": {"group": ""},
        "limit is -1": {"limit": -1},
        "swap them": {"sort_from": "2", "sort_to": "1"},
        "there is no store": {"store": "orders-by-costumer"},
    }
    for text, fields in texts.items():
        assert text in (await refusal(edge, **fields))["message"]


async def test_the_ranges_of_a_socket_are_limited() -> None:
    async with RunningEdge(max_ranges=1) as edge, edge.socket("/v1/stream") as socket:
        await watch(socket)
        await ask(socket, id="2", watch_range={"range": MINE | {"sort_from": "1"}})
        refused = await receive(socket)

    assert refused["error"]["code"] == "too_many_subscriptions"


async def test_a_range_that_cannot_be_read_yet_is_announced_and_follows_later() -> None:
    async with RunningEdge(unavailable_after_ms=100, min_interval_ms=20, default_interval_ms=20, tick_ms=5) as edge:
        address = edge.query.address
        await edge.query.stop()
        async with edge.socket("/v1/stream") as socket:
            await ask(socket, id="1", watch_range={"range": MINE})
            announced = await receive(socket)
            await edge.query.start(address)
            started = await receive(socket)

    assert announced["error"]["code"] == "unavailable"
    assert started["range_watched"]["start"] == "START_SNAPSHOT"
    assert started["range_watched"]["through"] == {"epoch": "7"}
