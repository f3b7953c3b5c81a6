"""A change at the source reaches the phone that watches, once and in order."""

import time
from contextlib import suppress
from itertools import count

import pytest
from drivers.gateway_client import Gateway, GatewayClient, offset_of
from drivers.order_source import OrderSource
from drivers.range_reader import Held, RangeReader, held_of, orders_of

from statecast.orders.v1.order_pb2 import OrderStatus
from testkit.waiting import eventually, scaled

ALICE = "customer-0001"
INTERVAL_S = 0.5
TICK_S = 0.025
"""The resolution of the edges' schedule: a frame may be early by this much."""


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


def test_the_published_command_with_a_password_watches_an_order(source: OrderSource, gateway: Gateway) -> None:
    order_id = source.place("customer-0004", {"item-a": 1}).order_id
    phone = GatewayClient(gateway, {"Authorization": "Basic dXNlcm5hbWU6cGFzc3dvcmQ="})
    with phone.open("/update/orders") as watch:
        watch.send({"type": "order_updates_request", "order_id": order_id})

        watch.until_status(order_id, "Placed")


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


def test_frames_keep_to_the_interval_while_changes_come_faster(source: OrderSource, alice: GatewayClient) -> None:
    """At most one frame for each interval that has passed, the newest state in each, and the last one arrives."""
    order_id, wanted, changes = source.place(ALICE, {"item-a": 1}).order_id, 12, count(1)
    with alice.watch(order_id) as watch:
        watch.until_status(order_id, "Placed")
    began = time.monotonic()
    with alice.watch(order_id, interval_ms=round(INTERVAL_S * 1000)) as watch:
        while len(watch.frames) < wanted:
            assert time.monotonic() - began < scaled(60), f"frames have stopped: {watch.frames}"
            last = next(changes)
            source.advance(order_id, OrderStatus.ORDER_STATUS_SHIPPED, tracking_number=str(last))
            with suppress(TimeoutError):
                watch.next(timeout_s=0.01)
        while watch.frames[-1]["data"]["tracking_number"] != str(last):
            watch.next()
        took_s = time.monotonic() - began

    numbers = [int(frame["data"]["tracking_number"] or 0) for frame in watch.frames]
    offsets = [offset_of(frame) for frame in watch.frames]
    assert (len(watch.frames) - 1) * INTERVAL_S <= took_s + TICK_S
    assert last > len(watch.frames), "the changes came no faster than the interval"
    assert numbers == sorted(set(numbers))
    assert offsets == sorted(set(offsets))


def test_a_subscriber_that_asks_for_it_is_told_at_each_interval(source: OrderSource, alice: GatewayClient) -> None:
    order_id = source.place(ALICE, {"item-a": 1}).order_id
    with alice.watch(order_id) as watch:
        placed = watch.until_status(order_id, "Placed")
    with alice.open(f"/update/orders/{order_id}?interval_ms=200&repeat=true") as watch:
        unchanged = [watch.next() for _ in range(5)]
        source.advance(order_id, OrderStatus.ORDER_STATUS_PAID)
        paid = watch.until_status(order_id, "Paid")
        again = watch.next()

    assert [frame["token"] for frame in unchanged] == [placed["token"]] * 5
    assert offset_of(paid) > offset_of(placed)
    assert (again["data"], again["token"]) == (paid["data"], paid["token"])


def test_a_subscriber_resumes_without_gap_or_repeat(source: OrderSource, alice: GatewayClient) -> None:
    order_id = source.place(ALICE, {"item-a": 1}).order_id
    with alice.watch(order_id) as watch:
        placed = watch.until_status(order_id, "Placed")

    source.advance(order_id, OrderStatus.ORDER_STATUS_PAID)
    with alice.watch(order_id, placed["token"]) as watch:
        missed = watch.until_status(order_id, "Paid")

    with alice.watch(order_id, missed["token"]) as watch:
        with pytest.raises(TimeoutError):
            watch.next(timeout_s=1.5)
        source.advance(order_id, OrderStatus.ORDER_STATUS_PACKED)
        frame = watch.next()

    assert frame["data"]["status"] == "Packed"
    assert offset_of(frame) > offset_of(missed) > offset_of(placed)


def test_a_lookup_by_rest_gives_the_order_and_its_token(source: OrderSource, alice: GatewayClient) -> None:
    order_id = source.place(ALICE, {"item-a": 1}).order_id
    with alice.watch(order_id) as watch:
        frame = watch.until_status(order_id, "Placed")

    answer = alice.get(f"/update/orders/{order_id}")

    assert answer.status_code == 200
    assert answer.json()["data"] == frame["data"]
    assert answer.json()["token"] == frame["token"]


def test_a_range_begins_after_what_a_lookup_by_rest_gave(source: OrderSource, alice: GatewayClient) -> None:
    """A page is shown at once, perhaps from a cache, and the socket brings the changes since."""
    range_spec = orders_of(ALICE)
    order_id = source.place(ALICE, {"item-a": 1}).order_id
    with alice.watch(order_id) as watch:
        watch.until_status(order_id, "Placed")

    def page_with_order() -> Held:
        page = held_of(alice.rows(**range_spec).json())
        assert order_id in page.rows
        return page

    page = eventually(page_with_order)
    later = source.place(ALICE, {"item-a": 1}).order_id
    with alice.open("/v1/stream") as socket:
        newer = RangeReader(socket, {"interval_ms": 0, **range_spec}, page)
        newer.until(later, "ORDER_STATUS_PLACED")

    assert newer.resumed
    assert newer.of(later) == [("ENTERED", "ORDER_STATUS_PLACED")]
    assert newer.of(order_id) == []
    assert newer.placed == {order_id, later}
