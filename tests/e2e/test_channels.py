"""Subscriptions that come from elsewhere follow their client from edge to edge; a revoked consumer is cut off."""

import os
import subprocess
import sys
from contextlib import ExitStack
from typing import Any, NoReturn

import httpx
import pytest
from drivers.edge_metrics import SOCKETS, edges_of
from drivers.gateway_client import Frame, Gateway, GatewayClient, OrderSocket, client_of
from drivers.order_source import OrderSource
from drivers.range_reader import RangeReader, orders_of
from websockets.exceptions import ConnectionClosed, InvalidStatus

from local_stack.running_stack import RunningStack
from statecast.orders.v1.order_pb2 import OrderStatus
from testkit.waiting import eventually, scaled

ALICE, BOB = "customer-0001", "customer-0002"
STORE = "orders-by-key"
PLACED, PAID, PACKED = "ORDER_STATUS_PLACED", "ORDER_STATUS_PAID", "ORDER_STATUS_PACKED"


class ChannelOwner:
    """Another process of a phone's consumer: it decides what the phone's socket is told."""

    def __init__(self, gateway: Gateway, phone: GatewayClient) -> None:
        self._gateway = gateway
        self._phone = phone
        self.channel: str = self.call("POST", "/v1/channels").json()["channel"]

    @property
    def path(self) -> str:
        """Where the channel is."""
        return f"/v1/channels/{self.channel}"

    def call(self, method: str, path: str, **more: Any) -> httpx.Response:
        """A call through the gateway that must succeed."""
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

    def add(self, order_id: str) -> None:
        """Adds an order to the channel, to be told of at once."""
        self._add({"store": STORE, "key": {"group": order_id}})

    def add_range(self, range_spec: Frame) -> None:
        """Adds a range to the channel, to be told of at once."""
        self._add({"range": range_spec})

    def end_range(self, range_spec: Frame) -> None:
        """Ends a range that was added."""
        self.call("DELETE", f"{self.path}/subscriptions/range", params=range_spec)

    def _add(self, subscription: Frame) -> None:
        body = {"subscriptions": [subscription | {"interval_ms": 0}]}
        self.call("POST", f"{self.path}/subscriptions", json=body)


def until_status(watch: OrderSocket, order_id: str, status: "OrderStatus.ValueType") -> Frame:
    """Reads on until the order is told with the status."""
    while True:
        changed = watch.next().get("changed", {})
        if changed.get("key") == {"group": order_id} and changed["row"]["status"] == OrderStatus.Name(status):
            return {"store": STORE, "key": {"group": order_id}, "position": changed["position"]}


def until_event(watch: OrderSocket, event: str) -> Frame:
    """Reads on until the event; returns it."""
    while event not in (frame := watch.next()):
        continue
    return dict(frame[event])


def edge_with_a_socket(stack: RunningStack) -> str:
    """The name of the edge that has an open socket."""

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


def attached(opening: ExitStack, phone: GatewayClient, path: str) -> OrderSocket:
    """A socket of the channel, opened as soon as the gateway leads to an edge that lives."""

    def attach() -> OrderSocket:
        try:
            return opening.enter_context(phone.open(f"{path}/stream"))
        except InvalidStatus as refusal:
            raise AssertionError(refusal) from refusal

    return eventually(attach)


@pytest.mark.timeout(240)
def test_a_channel_goes_on_at_another_edge_without_a_gap_or_a_repeat(
    stack: RunningStack, gateway: Gateway, source: OrderSource, alice: GatewayClient
) -> None:
    one, two = (source.place(ALICE, {"item-a": 1}).order_id for _ in range(2))
    owner = ChannelOwner(gateway, alice)
    owner.add(one)
    with alice.open(f"{owner.path}/stream") as before:
        before.send({"begin": {}})
        until_status(before, one, OrderStatus.ORDER_STATUS_PLACED)
        owner.add(two)
        other = until_status(before, two, OrderStatus.ORDER_STATUS_PLACED)
        source.advance(one, OrderStatus.ORDER_STATUS_PAID)
        last = until_status(before, one, OrderStatus.ORDER_STATUS_PAID)
        killed = kill_the_edge_of(stack, before)
    source.advance(one, OrderStatus.ORDER_STATUS_PACKED)
    with ExitStack() as opening:
        after = attached(opening, alice, owner.path)
        after.send({"begin": {"after": [last, other]}})
        until_status(after, one, OrderStatus.ORDER_STATUS_PACKED)
        source.advance(two, OrderStatus.ORDER_STATUS_PAID)
        until_status(after, two, OrderStatus.ORDER_STATUS_PAID)
    stack.wait_ready(killed)

    starts = [frame["subscribed"]["start"] for frame in after.frames if "subscribed" in frame]
    changes = [frame["changed"] for frame in before.frames + after.frames if "changed" in frame]
    assert starts == ["START_RECOVERED", "START_RECOVERED"]
    for order_id, statuses in ((one, ("PLACED", "PAID", "PACKED")), (two, ("PLACED", "PAID"))):
        mine = [each for each in changes if each["key"]["group"] == order_id]
        offsets = [int(each["position"]["offset"]) for each in mine]
        assert offsets == sorted(set(offsets))
        assert [each["row"]["status"] for each in mine] == [f"ORDER_STATUS_{status}" for status in statuses]


@pytest.mark.timeout(240)
def test_a_range_of_a_channel_goes_on_at_another_edge_with_what_was_missed(
    stack: RunningStack, gateway: Gateway, source: OrderSource, alice: GatewayClient
) -> None:
    owner, range_spec = ChannelOwner(gateway, alice), orders_of(ALICE)
    with alice.open(f"{owner.path}/stream") as socket:
        socket.next()
        owner.add_range(range_spec)
        before = RangeReader(socket, {"begin": {}})
        kept, changed, removed = (source.place(ALICE, {"item-a": 1}).order_id for _ in range(3))
        for order_id in (kept, changed, removed):
            before.until(order_id, PLACED)
        source.advance(changed, OrderStatus.ORDER_STATUS_PAID)
        before.until(changed, PAID)
        killed = kill_the_edge_of(stack, socket)
    source.delete(removed)
    entered = source.place(ALICE, {"item-a": 1}).order_id
    with ExitStack() as opening:
        socket = attached(opening, alice, owner.path)
        socket.next()
        held = {"range": before.range, "through": before.through}
        after = RangeReader(socket, {"begin": {"after_ranges": [held]}}, before.through)
        after.until(entered, PLACED)
        if not after.of(removed):
            after.until(removed, None)
        source.advance(changed, OrderStatus.ORDER_STATUS_PACKED)
        after.until(changed, PACKED)
        source.delete(entered)
        after.until(entered, None)
        owner.end_range(range_spec)
        ended = until_event(socket, "range_unwatched")
    stack.wait_ready(killed)

    assert ended["range"] == before.range
    assert before.through is not None
    assert (before.start, after.start) == ("START_SNAPSHOT", "START_RECOVERED")
    assert all(offset > int(before.through["offset"]) for offset in after.offsets)
    assert after.of(removed) == [("LEFT", "")]
    assert after.of(kept) == []
    assert (after.of(changed)[-1][1], after.of(entered)[-1]) == (PACKED, ("LEFT", ""))


def test_a_range_of_another_customers_orders_is_not_taken_into_a_channel(
    gateway: Gateway, alice: GatewayClient
) -> None:
    owner = ChannelOwner(gateway, alice)

    with pytest.raises(AssertionError, match="forbidden"):
        owner.add_range(orders_of(BOB))
    assert owner.call("GET", owner.path).json()["subscriptions"] == []


def test_another_consumers_channel_is_refused(gateway: Gateway, alice: GatewayClient, bob: GatewayClient) -> None:
    owner = ChannelOwner(gateway, alice)

    assert bob.get(owner.path).status_code == 403
    with pytest.raises(InvalidStatus) as refusal, bob.open(f"{owner.path}/stream"):
        pytest.fail("the socket was opened")
    assert refusal.value.response.status_code == 403


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
