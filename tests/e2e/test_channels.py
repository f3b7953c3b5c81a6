"""Watches that come from elsewhere follow their client from edge to edge; a revoked consumer is cut off."""

import os
import subprocess
import sys
from contextlib import ExitStack
from typing import Any, NoReturn

import httpx
import pytest
from drivers.edge_metrics import SOCKETS, edges_of
from drivers.gateway_client import Frame, Gateway, GatewayClient, OrderSocket, client_of, offset_of
from drivers.order_source import OrderSource
from drivers.range_reader import RangeReader, frames_with, orders_of
from websockets.exceptions import ConnectionClosed, InvalidStatus

from local_stack.running_stack import RunningStack
from statecast.orders.v1.order_pb2 import OrderStatus
from testkit.waiting import eventually, scaled

ALICE, BOB = "customer-0001", "customer-0002"
STORE = "orders-by-key"
PLACED, PAID, PACKED = "ORDER_STATUS_PLACED", "ORDER_STATUS_PAID", "ORDER_STATUS_PACKED"


class ChannelOwner:
    """Another process of a phone's consumer: it chooses the watches of the phone's socket."""

    def __init__(self, gateway: Gateway, phone: GatewayClient) -> None:
        self._gateway = gateway
        self._phone = phone
        self.channel: str = self.call("POST", "/v1/channels").json()["channel"]

    @property
    def path(self) -> str:
        """Where the channel is."""
        return f"/v1/channels/{self.channel}"

    def call(self, method: str, path: str, **more: Any) -> httpx.Response:
        """Makes a call through the gateway that must succeed."""
        answer = httpx.request(
            method,
            self._gateway.https + path,
            headers=self._phone.headers,
            verify=self._gateway.tls(),
            timeout=scaled(10),
            **more,
        )

        assert answer.is_success, answer.text
        return answer

    def put(self, name: str, watch: Frame) -> None:
        """Puts a watch into the channel, to be told of at once."""
        self.call("PUT", f"{self.path}/watches/{name}", json={"watch": {"interval_ms": 0, **watch}})

    def remove(self, name: str) -> None:
        """Ends a watch of the channel."""
        self.call("DELETE", f"{self.path}/watches/{name}")


def order_watch(order_id: str) -> Frame:
    """Returns the watch of an order."""
    return {"store": STORE, "group": order_id}


def until_status(socket: OrderSocket, name: str, status: "OrderStatus.ValueType") -> Frame:
    """Reads on until the watch of this name shows the status; returns its place, as a resumption names it."""
    shown = ""
    while True:
        frame = socket.next()
        if frame.get("path") == [name]:
            shown = next((row["row"]["status"] for row in frame.get("rows", ())), shown)
            if "token" in frame and shown == OrderStatus.Name(status):
                return {"path": [name], "token": frame["token"]}


def frames_of(socket: OrderSocket, name: str, part: str) -> list[Frame]:
    """Returns the frames of the watch of this name that have a part."""
    return [frame for frame in socket.frames if frame.get("path") == [name] and part in frame]


def edge_with_a_socket(stack: RunningStack) -> str:
    """Returns the name of the edge that has an open socket."""

    def find() -> str:
        for edge in edges_of(stack):
            if edge.metric(SOCKETS) == 1:
                return edge.name
        raise AssertionError("no edge has exactly one socket")

    return eventually(find)


def read_on(watch: OrderSocket) -> NoReturn:
    """Reads until the socket is closed."""
    while True:
        watch.next()


def kill_the_edge_of(stack: RunningStack, watch: OrderSocket) -> str:
    """Kills the edge that has the only open socket, and returns its name when the socket has noticed."""
    killed = edge_with_a_socket(stack)
    stack.kill(killed)
    with pytest.raises(ConnectionClosed):
        read_on(watch)
    return killed


def opened(opening: ExitStack, phone: GatewayClient) -> OrderSocket:
    """Returns a socket, opened as soon as the gateway leads to an edge that lives."""

    def opens() -> OrderSocket:
        try:
            return opening.enter_context(phone.open("/v1/stream"))
        except InvalidStatus as refusal:
            raise AssertionError(refusal) from refusal

    return eventually(opens)


@pytest.mark.timeout(240)
def test_a_channel_goes_on_at_another_edge_without_a_gap_or_a_repeat(
    stack: RunningStack, gateway: Gateway, source: OrderSource, alice: GatewayClient
) -> None:
    one, two = (source.place(ALICE, {"item-a": 1}).order_id for _ in range(2))
    owner = ChannelOwner(gateway, alice)
    owner.put("one", order_watch(one))
    with alice.open("/v1/stream") as before:
        before.send({"watch": [{"id": 1, "channel": owner.channel}]})
        until_status(before, "one", OrderStatus.ORDER_STATUS_PLACED)
        owner.put("two", order_watch(two))
        other = until_status(before, "two", OrderStatus.ORDER_STATUS_PLACED)
        source.advance(one, OrderStatus.ORDER_STATUS_PAID)
        last = until_status(before, "one", OrderStatus.ORDER_STATUS_PAID)
        killed = kill_the_edge_of(stack, before)
    source.advance(one, OrderStatus.ORDER_STATUS_PACKED)
    with ExitStack() as opening:
        after = opened(opening, alice)
        after.send({"watch": [{"id": 1, "channel": owner.channel, "below": [last, other]}]})
        until_status(after, "one", OrderStatus.ORDER_STATUS_PACKED)
        source.advance(two, OrderStatus.ORDER_STATUS_PAID)
        until_status(after, "two", OrderStatus.ORDER_STATUS_PAID)
    stack.wait_ready(killed)

    for name, statuses in (("one", ("PLACED", "PAID", "PACKED")), ("two", ("PLACED", "PAID"))):
        changes = frames_of(before, name, "rows") + frames_of(after, name, "rows")
        rows = [row["row"]["status"] for frame in changes for row in frame["rows"]]
        offsets = [offset_of(frame) for frame in changes if "token" in frame]
        assert [frame["watching"].get("resumed") for frame in frames_of(after, name, "watching")] == [True]
        assert offsets == sorted(set(offsets))
        assert rows == [f"ORDER_STATUS_{status}" for status in statuses]


@pytest.mark.timeout(240)
def test_a_range_of_a_channel_goes_on_at_another_edge_with_what_was_missed(
    stack: RunningStack, gateway: Gateway, source: OrderSource, alice: GatewayClient
) -> None:
    owner, path = ChannelOwner(gateway, alice), ["mine"]
    watch = {"channel": owner.channel}
    owner.put("mine", orders_of(ALICE))
    with alice.open("/v1/stream") as socket:
        before = RangeReader(socket, watch, path=path)
        kept, changed, removed = (source.place(ALICE, {"item-a": 1}).order_id for _ in range(3))
        for order_id in (kept, changed, removed):
            before.until(order_id, PLACED)
        source.advance(changed, OrderStatus.ORDER_STATUS_PAID)
        before.until(changed, PAID)
        killed = kill_the_edge_of(stack, socket)
    source.delete(removed)
    entered = source.place(ALICE, {"item-a": 1}).order_id
    with ExitStack() as opening:
        socket = opened(opening, alice)
        after = RangeReader(socket, watch, before.held, path)
        after.until(entered, PLACED)
        if not after.of(removed):
            after.until(removed, None)
        source.advance(changed, OrderStatus.ORDER_STATUS_PACKED)
        after.until(changed, PACKED)
        source.delete(entered)
        after.until(entered, None)
        owner.remove("mine")
        gone = next(frame for frame in frames_with(socket, "rows") if "path" not in frame)
    stack.wait_ready(killed)

    assert gone["rows"] == [{"key": "mine", "left": True}]
    assert (before.resumed, after.resumed) == (False, True)
    assert all(offset >= before.offsets[-1] for offset in after.offsets)
    assert after.of(removed) == [("LEFT", "")]
    assert after.of(kept) in ([], [("REPEATED", PLACED)])
    assert (after.of(changed)[-1][1], after.of(entered)[-1]) == (PACKED, ("LEFT", ""))
    assert after.placed == {kept, changed}


def test_a_range_of_another_customers_orders_is_not_taken_into_a_channel(
    gateway: Gateway, alice: GatewayClient
) -> None:
    owner = ChannelOwner(gateway, alice)

    with pytest.raises(AssertionError, match="forbidden"):
        owner.put("his", orders_of(BOB))
    assert owner.call("GET", owner.path).json()["watches"] == []


def test_another_consumers_channel_is_refused(gateway: Gateway, alice: GatewayClient, bob: GatewayClient) -> None:
    owner = ChannelOwner(gateway, alice)
    owner.put("mine", orders_of(ALICE))
    with bob.open("/v1/stream") as socket:
        socket.send({"watch": [{"id": 1, "channel": owner.channel}]})
        refused = next(frames_with(socket, "ended"))

    assert bob.get(owner.path).status_code == 404
    assert refused["ended"]["code"] == "unknown_channel"
    assert [frame for frame in socket.frames if "rows" in frame] == []


def test_a_revoked_consumers_socket_is_closed_until_the_revocation_is_lifted(
    stack: RunningStack, gateway: Gateway, bob: GatewayClient
) -> None:
    operator = client_of(stack, "operator")
    with bob.open() as watch:
        ended = httpx.post(
            f"{gateway.https}/v1/revocations",
            json={"consumer": BOB},
            headers=operator.headers,
            verify=gateway.tls(),
            timeout=scaled(10),
        )
        with pytest.raises(ConnectionClosed) as closing:
            watch.next()
    refused = bob.get("/update/orders/order-000001")
    environment = os.environ | {
        "WS_EDGE_KAFKA_BOOTSTRAP": stack.file.kafka.bootstrap,
        "WS_EDGE_GATEWAY_SECRET": "not-needed-to-lift",
    }
    subprocess.run([sys.executable, "-m", "ws_edge", "revoke", BOB, "--lift"], env=environment, check=True)

    def is_let_in() -> None:
        assert bob.get("/update/orders/no-such-order").status_code == 404

    eventually(is_let_in)
    assert ended.status_code == 201
    assert closing.value.rcvd is not None
    assert closing.value.rcvd.code == 4403
    assert (refused.status_code, refused.json()["error"]["code"]) == (403, "revoked")
