"""The models of the pipelines, on histories made by hand."""

from datetime import timedelta

import pytest
from drivers.change_history import History
from drivers.pipeline_models import (
    bookings_by_customer,
    home_delivery,
    hourly_sales_by_store,
    invoices_by_store,
    invoices_with_store,
    loyalty_notifications,
    masked_lines,
    matches_about_to_start,
    member_key,
    number_sort,
    odds_by_match,
    orders_by_customer,
    orders_by_item,
    orders_by_key,
    plain,
    rewards_by_customer,
    sales_by_city,
    stores_by_key,
    stores_with_sales,
    time_sort,
    us_share_holders,
)
from google.protobuf.timestamp_pb2 import Timestamp

from statecast.bookings.v1.booking_pb2 import Booking, BookingChange
from statecast.odds.v1.market_pb2 import Market, MarketChange, Outcome
from statecast.odds.v1.match_pb2 import Match, MatchChange, MatchStatus
from statecast.orders.v1.order_pb2 import Order, OrderChange, OrderItem
from statecast.portfolio.v1.open_position_pb2 import OpenPosition, OpenPositionChange
from statecast.portfolio.v1.share_holder_pb2 import ShareHolder
from statecast.sales.v1.city_sales_pb2 import CitySales
from statecast.sales.v1.customer_rewards_pb2 import CustomerRewards
from statecast.sales.v1.home_delivery_pb2 import HomeDelivery
from statecast.sales.v1.hourly_sales_pb2 import HourlySales
from statecast.sales.v1.invoice_pb2 import (
    CustomerType,
    DeliveryAddress,
    DeliveryType,
    Invoice,
    InvoiceChange,
    InvoiceLine,
)
from statecast.sales.v1.invoice_with_store_pb2 import InvoiceWithStore
from statecast.sales.v1.loyalty_notification_pb2 import LoyaltyNotification
from statecast.sales.v1.masked_line_pb2 import MaskedLine
from statecast.sales.v1.store_pb2 import Store, StoreChange
from statecast.sales.v1.store_sales_pb2 import StoreSales
from statecast.sales.v1.store_with_sales_pb2 import StoreWithSales

BOOKED = Timestamp(seconds=1_724_848_496)
START = Timestamp(seconds=1_724_848_496)
PRIME, NON_PRIME = CustomerType.CUSTOMER_TYPE_PRIME, CustomerType.CUSTOMER_TYPE_NON_PRIME
ELEVEN = 1_724_842_800
"""2024-08-28, eleven o'clock in UTC."""
FIRST_HOUR = "s1\0" + "2024-08-28T11:00:00.000000Z\0" + "2024-08-28T12:00:00.000000Z"
SECOND_HOUR = "s1\0" + "2024-08-28T12:00:00.000000Z\0" + "2024-08-28T13:00:00.000000Z"
SENT, TAKEN = DeliveryType.DELIVERY_TYPE_HOME_DELIVERY, DeliveryType.DELIVERY_TYPE_TAKE_AWAY
MADE = Timestamp(seconds=1_724_848_496)
PUNE = DeliveryAddress(address_line="7 Station Road", city="Pune", postal_code="411001", contact_number="9")


def test_times_are_27_characters_of_utc() -> None:
    assert time_sort(Timestamp(seconds=1_724_848_496, nanos=1_999)) == "2024-08-28T12:34:56.000001Z"


def test_numbers_are_19_digits() -> None:
    assert (number_sort(0), number_sort(2**63 - 1)) == ("0" * 19, "9223372036854775807")


def test_parts_are_parted_by_nul() -> None:
    assert member_key("g", "s", "m") == "g\0s\0m"


def order(order_id: str, *items: str) -> Order:
    return Order(
        order_id=order_id,
        customer_id="c1",
        items=[OrderItem(item_id=item, quantity=1) for item in items],
        placed_at=Timestamp(seconds=1_724_848_496, nanos=123_456_000),
        updated_at=Timestamp(seconds=1_724_848_496),
    )


def order_history() -> History:
    history = History(OrderChange, "orders")
    history.snapshot(order("o1", "tea"))
    history.create(order("o2", "tea", "milk"))
    history.create(order("o3", "milk"))
    history.update("o1", updated_at=Timestamp(seconds=1_724_848_500), items=[OrderItem(item_id="honey", quantity=2)])
    history.delete("o3")
    return history


def test_orders_stand_by_their_id() -> None:
    assert set(orders_by_key(order_history().changes)) == {"o1", "o2"}


def test_a_customers_orders_stand_by_the_time_of_their_last_change() -> None:
    assert set(orders_by_customer(order_history().changes)) == {
        "c1\0" + "2024-08-28T12:35:00.000000Z\0o1",
        "c1\0" + "2024-08-28T12:34:56.000000Z\0o2",
    }


def test_an_order_stands_at_each_of_its_items() -> None:
    assert set(orders_by_item(order_history().changes)) == {
        "tea\0" + "2024-08-28T12:34:56.123456Z\0o1",
        "honey\0" + "2024-08-28T12:34:56.123456Z\0o1",
        "tea\0" + "2024-08-28T12:34:56.123456Z\0o2",
        "milk\0" + "2024-08-28T12:34:56.123456Z\0o2",
    }


def test_a_booking_stands_where_it_was_handed_over_to_and_a_cancelled_one_nowhere() -> None:
    history = History(BookingChange, "bookings")
    history.snapshot(Booking(booking_id="b1", customer_id="c1", booked_at=BOOKED, destination="Wien Hbf"))
    history.create(Booking(booking_id="b2", customer_id="c1", booked_at=BOOKED))
    history.create(Booking(booking_id="b3", customer_id="c2", booked_at=BOOKED))
    history.update("b1", destination="Köln Hbf")
    history.update("b2", customer_id="c2")
    history.delete("b3")

    assert bookings_by_customer(history.changes) == {
        "c1\0" + "2024-08-28T12:34:56.000000Z\0b1": Booking(
            booking_id="b1", customer_id="c1", booked_at=BOOKED, destination="Köln Hbf"
        ),
        "c2\0" + "2024-08-28T12:34:56.000000Z\0b2": Booking(booking_id="b2", customer_id="c2", booked_at=BOOKED),
    }


def test_the_markets_of_a_match_stand_by_their_names() -> None:
    history = History(MarketChange, "markets")
    history.create(Market(market_id="k1", match_id="m1", name="goals"))
    history.create(Market(market_id="k2", match_id="m1", name="match winner"))
    history.create(Market(market_id="k3", match_id="m2", name="goals"))
    history.update("k1", outcomes=[Outcome(name="over", odds_thousandths=1900)])
    history.delete("k3")
    expected = odds_by_match(history.changes)

    assert set(expected) == {"m1\0goals\0k1", "m1\0match winner\0k2"}
    assert expected["m1\0goals\0k1"].outcomes[0].odds_thousandths == 1900


def test_a_match_stands_among_those_about_to_start_as_long_as_it_is() -> None:
    history = History(MatchChange, "matches")
    for match_id in ("m1", "m2", "m3"):
        history.create(Match(match_id=match_id, status=MatchStatus.MATCH_STATUS_SCHEDULED, starts_at=START))
        history.update(match_id, status=MatchStatus.MATCH_STATUS_ABOUT_TO_START)
    history.update("m1", starts_at=Timestamp(seconds=1_724_848_556))
    history.update("m2", status=MatchStatus.MATCH_STATUS_IN_PLAY)
    history.delete("m3")

    assert set(matches_about_to_start(history.changes)) == {
        "MATCH_STATUS_ABOUT_TO_START\0" + "2024-08-28T12:35:56.000000Z\0m1"
    }


def position(position_id: str, client: str, amount: int, exchange: str) -> OpenPosition:
    return OpenPosition(position_id=position_id, client=client, amount=amount, exchange=exchange)


def test_only_positions_at_nasdaq_count_for_whom_they_belong_to_in_the_end() -> None:
    history = History(OpenPositionChange, "open_positions")
    history.snapshot(position("p1", "ann", 10, "NASDAQ"))
    history.create(position("p2", "ann", 5, "LON"))
    history.create(position("p3", "ben", 7, "NASDAQ"))
    history.create(position("p4", "cid", 9, "NASDAQ"))
    history.create(position("p5", "dee", 1, "NASDAQ"))
    history.update("p1", amount=12)
    history.update("p2", exchange="NASDAQ")
    history.update("p3", client="ann")
    history.update("p4", exchange="LON")
    history.delete("p5")

    assert us_share_holders(history.changes) == {
        "ann": ShareHolder(client="ann", positions=3, shares=24, position_ids=["p1", "p2", "p3"])
    }


def invoice(number: str, total: int, card: str = "ann", kind: "CustomerType.ValueType" = PRIME) -> Invoice:
    return Invoice(
        invoice_number=number, store_id="s1", customer_card_no=card, customer_type=kind, total_amount_cents=total
    )


def made_at(number: str, total: int, seconds: int) -> Invoice:
    row = invoice(number, total)
    row.created_at.CopyFrom(Timestamp(seconds=ELEVEN + seconds, nanos=999_999_000))
    return row


def invoices() -> History:
    return History(InvoiceChange, "invoices")


def test_rewards_are_of_prime_invoices_and_points_are_whole_per_invoice() -> None:
    history = invoices()
    history.snapshot(invoice("i1", 199))
    history.create(invoice("i2", 250))
    history.create(invoice("i3", 5000, kind=NON_PRIME))
    history.create(invoice("i4", 1000, card="ben"))
    history.create(invoice("i5", 700, card="cid"))
    history.update("i2", total_amount_cents=399)
    history.update("i4", customer_card_no="ann")
    history.update("i5", customer_type=NON_PRIME)
    history.create(invoice("i6", 100))
    history.delete("i6")

    assert rewards_by_customer(history.changes) == {
        "ann": CustomerRewards(customer_card_no="ann", invoices=3, spent_cents=1598, points=1 + 3 + 10)
    }


def test_invoices_stand_under_their_store_by_the_time_when_they_were_made() -> None:
    history = invoices()
    history.create(made_at("i1", 100, 0))
    history.create(made_at("i2", 200, 1))
    history.update("i1", total_amount_cents=150)
    history.delete("i2")
    made = made_at("i1", 150, 0)

    assert invoices_by_store(history.changes) == {member_key("s1", time_sort(made.created_at), "i1"): made}


def test_sales_are_summed_by_the_hour_in_which_the_invoice_was_made() -> None:
    history = invoices()
    history.create(made_at("i1", 100, 0))
    history.create(made_at("i2", 201, 3599))
    history.create(made_at("i3", 400, 3600))
    history.update("i1", total_amount_cents=150)
    history.create(made_at("i4", 999, 3600))
    history.delete("i4")
    first, second = Timestamp(seconds=ELEVEN), Timestamp(seconds=ELEVEN + 3600)

    assert hourly_sales_by_store(history.changes) == {
        FIRST_HOUR: HourlySales(
            store_id="s1", window_start=first, window_end=second, invoices=2, amount_cents=351, average_cents=175.5
        ),
        SECOND_HOUR: HourlySales(
            store_id="s1",
            window_start=second,
            window_end=Timestamp(seconds=ELEVEN + 7200),
            invoices=1,
            amount_cents=400,
            average_cents=400,
        ),
    }


def test_a_change_that_is_too_late_for_its_hour_changes_nothing() -> None:
    history = invoices()
    history.create(made_at("i1", 100, 0), commit_s=ELEVEN)
    history.update("i1", total_amount_cents=150, commit_s=ELEVEN + 3600 + 60)
    history.update("i1", total_amount_cents=900, commit_s=ELEVEN + 3600 + 61)
    history.create(made_at("i2", 500, 0), commit_s=ELEVEN + 9999)
    history.delete("i1", commit_s=ELEVEN + 9999)
    sales = hourly_sales_by_store(history.changes, timedelta(seconds=60))

    assert {key: (hour.invoices, hour.amount_cents) for key, hour in sales.items()} == {FIRST_HOUR: (1, 150)}


def stores_of(*rows: Store) -> History:
    history = History(StoreChange, "stores")
    for row in rows:
        history.snapshot(row)
    return history


def test_an_invoice_stands_with_its_store_as_it_ever_was_or_without() -> None:
    stores = stores_of(Store(store_id="s1", name="Corner"), Store(store_id="s2", name="Plaza"))
    stores.update("s1", name="Square")
    history = invoices()
    history.create(invoice("i1", 100))
    history.create(invoice("i2", 100))
    history.delete("i2")
    row = invoice("i1", 100)

    assert invoices_with_store([*history.changes, *stores.changes]) == {
        "i1": [
            InvoiceWithStore(invoice=row),
            InvoiceWithStore(invoice=row, store=Store(store_id="s1", name="Corner")),
            InvoiceWithStore(invoice=row, store=Store(store_id="s1", name="Square")),
        ]
    }
    assert {key: store.name for key, store in stores_by_key(stores.changes).items()} == {"s1": "Square", "s2": "Plaza"}


def test_sales_of_a_city_are_those_of_the_stores_that_stand_there() -> None:
    stores = stores_of(
        Store(store_id="s1", city="Pune"), Store(store_id="s2", city="Pune"), Store(store_id="s3", city="Delhi")
    )
    stores.update("s1", name="Square")
    history = invoices()
    for number, store in enumerate(("s1", "s2", "s3", "s3", "s4")):
        row = invoice(f"i{number}", 100)
        row.store_id = store
        history.create(row)
    history.update("i1", total_amount_cents=250)
    history.delete("i3")

    assert sales_by_city([*history.changes, *stores.changes]) == {
        "Pune": CitySales(city="Pune", invoices=2, amount_cents=350),
        "Delhi": CitySales(city="Delhi", invoices=1, amount_cents=100),
    }


def test_where_a_store_has_moved_the_log_does_not_say_in_which_city_it_sold() -> None:
    stores = stores_of(Store(store_id="s1", city="Pune"))
    stores.update("s1", city="Delhi")
    history = invoices()
    history.create(invoice("i1", 100))

    with pytest.raises(AssertionError, match="s1 has moved"):
        sales_by_city([*history.changes, *stores.changes])


def test_a_store_stands_with_all_that_it_has_sold_or_with_nothing() -> None:
    stores = stores_of(Store(store_id="s1", name="Corner"), Store(store_id="s2", name="Plaza"))
    stores.update("s1", name="Square")
    history = invoices()
    history.create(invoice("i1", 100))
    history.create(invoice("i2", 200))
    history.update("i1", total_amount_cents=150)

    assert stores_with_sales([*history.changes, *stores.changes]) == {
        "s1": StoreWithSales(
            store=Store(store_id="s1", name="Square"), sales=StoreSales(store_id="s1", invoices=2, amount_cents=350)
        ),
        "s2": StoreWithSales(store=Store(store_id="s2", name="Plaza")),
    }


def invoice_history() -> History:
    history = History(InvoiceChange, "invoices")
    history.snapshot(
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
        )
    )
    history.create(
        Invoice(
            invoice_number="i2",
            store_id="s2",
            customer_card_no="123",
            customer_type=NON_PRIME,
            delivery_type=TAKEN,
            lines=[InvoiceLine(item_code="milk", item_quantity=1, item_price_cents=99) for _ in range(2)],
            total_amount_cents=198,
            created_at=MADE,
        )
    )
    history.update("i1", total_amount_cents=450)
    history.update("i2", customer_type=PRIME)
    history.delete("i2")
    return history


def test_each_version_of_an_invoice_that_is_sent_is_a_delivery() -> None:
    delivery = HomeDelivery(invoice_number="i1", store_id="s1", address=PUNE, created_at=MADE)

    assert home_delivery(invoice_history().changes) == plain([delivery, delivery])


def test_only_new_invoices_of_prime_customers_are_notified() -> None:
    notification = LoyaltyNotification(
        invoice_number="i1", customer_card_no="4000000000004711", total_amount_cents=300, earned_points=3
    )

    assert loyalty_notifications(invoice_history().changes) == plain([notification])


def test_each_line_of_each_version_is_masked() -> None:
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
    corrected = MaskedLine()
    corrected.CopyFrom(of_second)
    corrected.customer_type = PRIME

    assert masked_lines(invoice_history().changes) == plain(
        [of_first, of_first, of_second, of_second, corrected, corrected]
    )


def test_repetitions_of_a_change_give_nothing_more() -> None:
    changes = invoice_history().changes

    assert masked_lines([*changes, *changes]) == masked_lines(changes)
