"""A change at the source reaches the phone that watches, once and in order."""

import pytest
from drivers.gateway_client import GatewayClient
from drivers.order_source import OrderSource

from statecast.orders.v1.order_pb2 import OrderStatus

ALICE = "customer-0001"


def test_a_change_reaches_a_subscriber(source: OrderSource, alice: GatewayClient) -> None:
    order = source.place(ALICE, {"item-a": 1})
    with alice.watch(order.order_id) as watch:
        watch.until_status(order.order_id, "Placed")

        source.advance(order.order_id, OrderStatus.ORDER_STATUS_SHIPPED, tracking_number="1Z999")
        frame = watch.until_status(order.order_id, "Shipped")

    assert frame["type"] == "order_status_update"
    assert frame["data"] == {
        "order_id": order.order_id,
        "status": "Shipped",
        "estimated_delivery": "",
        "tracking_number": "1Z999",
    }


def test_both_request_forms_and_the_path_watch_the_same_order(source: OrderSource, alice: GatewayClient) -> None:
    order_id = source.place(ALICE, {"item-a": 1}).order_id
    frames = []
    with alice.open() as watch:
        watch.send({"type": "order_status_updates_request", "data": {"order_id": order_id}})
        frames.append(watch.until_status(order_id, "Placed"))
    with alice.open() as watch:
        watch.send({"type": "order_updates_request", "order_id": order_id})
        frames.append(watch.until_status(order_id, "Placed"))
    with alice.open(f"/update/orders/{order_id}") as watch:
        frames.append(watch.until_status(order_id, "Placed"))

    assert frames[0] == frames[1] == frames[2]


def test_an_order_that_does_not_exist_yet_appears_when_it_is_placed(source: OrderSource, alice: GatewayClient) -> None:
    known = source.place(ALICE, {"item-a": 1})
    later = f"{known.order_id}-later"
    with alice.watch(later) as watch:
        assert watch.until_status(later, "Unknown")["data"]["status"] == "Unknown"

        source.place(ALICE, {"item-a": 1}, order_id=later)

        assert watch.until_status(later, "Placed")["data"]["order_id"] == later


def test_a_deleted_order_is_announced_and_gone(source: OrderSource, alice: GatewayClient) -> None:
    order_id = source.place(ALICE, {"item-a": 1}).order_id
    with alice.watch(order_id) as watch:
        watch.until_status(order_id, "Placed")

        source.delete(order_id)
        watch.until_status(order_id, "Deleted")

    assert alice.get(f"/update/orders/{order_id}").status_code == 404


def test_a_subscriber_resumes_without_gap_or_repeat(source: OrderSource, alice: GatewayClient) -> None:
    order_id = source.place(ALICE, {"item-a": 1}).order_id
    with alice.watch(order_id) as watch:
        position = watch.until_status(order_id, "Placed")["position"]

    source.advance(order_id, OrderStatus.ORDER_STATUS_PAID)
    with alice.watch(order_id, position=position) as watch:
        missed = watch.until_status(order_id, "Paid")

    with alice.watch(order_id, position=missed["position"]) as watch:
        with pytest.raises(TimeoutError):
            watch.next(timeout_s=1.5)
        source.advance(order_id, OrderStatus.ORDER_STATUS_PACKED)
        frame = watch.next()

    assert frame["data"]["status"] == "Packed"
    assert int(frame["position"]["offset"]) > int(missed["position"]["offset"]) > int(position["offset"])


def test_a_lookup_by_rest_gives_the_order_and_its_position(source: OrderSource, alice: GatewayClient) -> None:
    order_id = source.place(ALICE, {"item-a": 1}).order_id
    with alice.watch(order_id) as watch:
        frame = watch.until_status(order_id, "Placed")

    answer = alice.get(f"/update/orders/{order_id}")

    assert answer.status_code == 200
    assert answer.json()["data"] == frame["data"]
    assert answer.json()["position"] == frame["position"]
