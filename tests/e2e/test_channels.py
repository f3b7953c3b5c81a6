"""Subscriptions that come from elsewhere follow their client from edge to edge; a revoked consumer is cut off."""

import os
import subprocess
import sys
from contextlib import ExitStack
from typing import Any

import httpx
import pytest
from drivers.mobile import Frame, Gateway, Phone, Watch
from drivers.participants import phone_of
from drivers.source import OrderSource
from drivers.waiting import eventually, scaled
from websockets.exceptions import ConnectionClosed, InvalidStatus

from local_stack.running_stack import RunningStack
from statecast.orders.v1.order_pb2 import OrderStatus

ALICE, BOB = "customer-0001", "customer-0002"
STORE = "orders-by-key"


class ChannelOwner:
    """Another process of a phone's consumer: it decides what the phone's socket is told."""

    def __init__(self, gateway: Gateway, phone: Phone) -> None:
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
        subscription = {"store": STORE, "key": {"group": order_id}, "interval_ms": 0}
        self.call("POST", f"{self.path}/subscriptions", json={"subscriptions": [subscription]})


def until_status(watch: Watch, order_id: str, status: "OrderStatus.ValueType") -> Frame:
    """Reads on until the order is told with the status."""
    while True:
        told = watch.next().get("changed", {})
        if told.get("key") == {"group": order_id} and told["row"]["status"] == OrderStatus.Name(status):
            return {"store": STORE, "key": {"group": order_id}, "position": told["position"]}


def edge_with_a_socket(stack: RunningStack) -> str:
    """The name of the edge that has an open socket."""

    def found() -> str:
        for edge in stack.file.edges:
            if "ws_edge_sockets 1.0" in httpx.get(edge.metrics).text:
                return edge.name
        raise AssertionError("no edge has exactly one socket")

    return eventually(found)


@pytest.mark.timeout(240)
def test_a_channel_goes_on_at_another_edge_without_a_gap_or_a_repeat(
    stack: RunningStack, gateway: Gateway, source: OrderSource, alice: Phone
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
        killed = edge_with_a_socket(stack)
        stack.kill(killed)
        with pytest.raises(ConnectionClosed):
            until_status(before, one, OrderStatus.ORDER_STATUS_DELIVERED)
    source.advance(one, OrderStatus.ORDER_STATUS_PACKED)

    def attached() -> Watch:
        try:
            return opening.enter_context(alice.open(f"{owner.path}/stream"))
        except InvalidStatus as refusal:
            raise AssertionError(refusal) from refusal

    with ExitStack() as opening:
        after = eventually(attached)
        after.send({"begin": {"after": [last, other]}})
        until_status(after, one, OrderStatus.ORDER_STATUS_PACKED)
        source.advance(two, OrderStatus.ORDER_STATUS_PAID)
        until_status(after, two, OrderStatus.ORDER_STATUS_PAID)
    stack.wait_ready(killed)

    starts = [frame["subscribed"]["start"] for frame in after.frames if "subscribed" in frame]
    told = [frame["changed"] for frame in before.frames + after.frames if "changed" in frame]
    assert starts == ["START_RECOVERED", "START_RECOVERED"]
    for order_id, statuses in ((one, ("PLACED", "PAID", "PACKED")), (two, ("PLACED", "PAID"))):
        mine = [each for each in told if each["key"]["group"] == order_id]
        offsets = [int(each["position"]["offset"]) for each in mine]
        assert offsets == sorted(set(offsets))
        assert [each["row"]["status"] for each in mine] == [f"ORDER_STATUS_{status}" for status in statuses]


def test_another_consumers_channel_is_refused(gateway: Gateway, alice: Phone, bob: Phone) -> None:
    owner = ChannelOwner(gateway, alice)

    assert bob.get(owner.path).status_code == 403
    with pytest.raises(InvalidStatus) as refusal, bob.open(f"{owner.path}/stream"):
        pytest.fail("the socket was opened")
    assert refusal.value.response.status_code == 403


def test_a_revoked_consumers_socket_is_closed_until_the_revocation_is_lifted(
    stack: RunningStack, gateway: Gateway, bob: Phone
) -> None:
    operator = phone_of(stack, "operator")
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
