"""A phone watches the orders of its owner without knowing one of them."""

from drivers.gateway_client import GatewayClient
from drivers.order_source import OrderSource
from drivers.range_reader import RangeReader, frames_with, orders_of

from statecast.orders.v1.order_pb2 import OrderStatus

ALICE, BOB = "customer-0001", "customer-0002"
PLACED, PAID = "ORDER_STATUS_PLACED", "ORDER_STATUS_PAID"
AT_ONCE = {"interval_ms": 0}


def test_orders_enter_change_and_leave_in_order(source: OrderSource, alice: GatewayClient) -> None:
    with alice.open("/v1/stream") as socket:
        mine = RangeReader(socket, AT_ONCE | orders_of(ALICE))
        order_id = source.place(ALICE, {"item-a": 1}).order_id
        mine.until(order_id, PLACED)
        source.advance(order_id, OrderStatus.ORDER_STATUS_PAID)
        mine.until(order_id, PAID)
        source.delete(order_id)
        mine.until(order_id, None)

    changes = mine.of(order_id)
    assert not mine.resumed
    assert (changes[0], changes[-1]) == (("ENTERED", PLACED), ("LEFT", ""))
    # The order stands under another sort value once it is paid: told as one change, or, when the edge has read between
    # the deletion of the old key and the new one, as two.
    assert changes[1:-1] in ([("CHANGED", PAID)], [("LEFT", ""), ("ENTERED", PAID)])


def test_an_order_that_is_handed_over_leaves_the_one_and_enters_the_other(
    source: OrderSource, alice: GatewayClient, bob: GatewayClient
) -> None:
    with alice.open("/v1/stream") as hers, bob.open("/v1/stream") as his:
        of_alice, of_bob = (
            RangeReader(socket, AT_ONCE | orders_of(customer)) for socket, customer in ((hers, ALICE), (his, BOB))
        )
        order_id = source.place(ALICE, {"item-a": 1}).order_id
        of_alice.until(order_id, PLACED)
        source.hand_over(order_id, BOB)
        of_alice.until(order_id, None)
        of_bob.until(order_id, PLACED)

    assert of_alice.of(order_id) == [("ENTERED", PLACED), ("LEFT", "")]
    assert of_bob.of(order_id) == [("ENTERED", PLACED)]


def test_a_range_is_resumed_with_what_was_missed(source: OrderSource, alice: GatewayClient) -> None:
    range_spec = AT_ONCE | orders_of(ALICE)
    with alice.open("/v1/stream") as socket:
        before = RangeReader(socket, range_spec)
        kept, removed = (source.place(ALICE, {"item-a": 1}).order_id for _ in range(2))
        for order_id in (kept, removed):
            before.until(order_id, PLACED)
    source.delete(removed)
    late = source.place(ALICE, {"item-a": 1}).order_id
    with alice.open("/v1/stream") as socket:
        resumed = RangeReader(socket, range_spec, before.held)
        resumed.until(late, PLACED)
        if not resumed.of(removed):
            resumed.until(removed, None)

    assert resumed.resumed
    assert resumed.offsets[0] >= before.offsets[-1]
    assert resumed.of(removed) == [("LEFT", "")]
    assert resumed.of(kept) in ([], [("REPEATED", PLACED)])
    assert resumed.placed == {kept, late}


def test_another_customers_orders_are_refused(alice: GatewayClient) -> None:
    with alice.open("/v1/stream") as socket:
        socket.send({"watch": [{"id": 7, "store": "orders-by-customer", "group": BOB}]})
        refused = next(frames_with(socket, "ended"))

    assert (refused["id"], refused["ended"]["code"]) == (7, "forbidden")
    assert "retry_ms" not in refused["ended"]
