"""The models of the routes of invoices, on histories made by hand."""

from drivers.pipeline_models import (
    home_delivery,
    loyalty_notifications,
    masked_lines,
    plain,
)
from google.protobuf.timestamp_pb2 import Timestamp

from statecast.sales.v1.home_delivery_pb2 import HomeDelivery
from statecast.sales.v1.invoice_pb2 import (
    CustomerType,
    DeliveryAddress,
    DeliveryType,
    Invoice,
    InvoiceLine,
)
from statecast.sales.v1.loyalty_notification_pb2 import LoyaltyNotification
from statecast.sales.v1.masked_line_pb2 import MaskedLine

PRIME, NON_PRIME = CustomerType.CUSTOMER_TYPE_PRIME, CustomerType.CUSTOMER_TYPE_NON_PRIME
SENT, TAKEN = DeliveryType.DELIVERY_TYPE_HOME_DELIVERY, DeliveryType.DELIVERY_TYPE_TAKE_AWAY
MADE = Timestamp(seconds=1_724_848_496)
PUNE = DeliveryAddress(address_line="7 Station Road", city="Pune", postal_code="411001", contact_number="9")


INVOICES = [
    Invoice(
        invoice_number="i1",
        store_id="s1",
        customer_card_no="4000000000004711",
        customer_type=PRIME,
        delivery_type=SENT,
        delivery_address=PUNE,
        lines=[InvoiceLine(item_code="tea", item_quantity=2, item_price_cents=150)],
        total_amount_cents=300,
        created_at=MADE,
    ),
    Invoice(
        invoice_number="i2",
        store_id="s2",
        customer_card_no="123",
        customer_type=NON_PRIME,
        delivery_type=TAKEN,
        lines=[InvoiceLine(item_code="milk", item_quantity=1, item_price_cents=99) for _ in range(2)],
        total_amount_cents=198,
        created_at=MADE,
    ),
]


def test_each_invoice_that_is_sent_is_a_delivery() -> None:
    delivery = HomeDelivery(invoice_number="i1", store_id="s1", address=PUNE, created_at=MADE)

    assert home_delivery(INVOICES) == plain([delivery])


def test_only_invoices_of_prime_customers_are_notified() -> None:
    notification = LoyaltyNotification(
        invoice_number="i1", customer_card_no="4000000000004711", total_amount_cents=300, earned_points=3
    )

    assert loyalty_notifications(INVOICES) == plain([notification])


def test_each_line_is_masked() -> None:
    of_first = MaskedLine(
        invoice_number="i1",
        store_id="s1",
        created_at=MADE,
        customer_type=PRIME,
        delivery_type=SENT,
        city="Pune",
        item_code="tea",
        item_quantity=2,
        item_price_cents=150,
        customer_card_masked="************4711",
    )
    of_second = MaskedLine(
        invoice_number="i2",
        store_id="s2",
        created_at=MADE,
        customer_type=NON_PRIME,
        delivery_type=TAKEN,
        item_code="milk",
        item_quantity=1,
        item_price_cents=99,
        customer_card_masked="123",
    )

    assert masked_lines(INVOICES) == plain([of_first, of_second, of_second])


def test_an_invoice_that_comes_again_gives_nothing_more() -> None:
    assert masked_lines([*INVOICES, *INVOICES]) == masked_lines(INVOICES)
