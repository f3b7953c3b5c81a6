"""The models of the state kept of invoices and stores, on histories made by hand."""

import pytest
from drivers.change_history import History
from drivers.pipeline_models import (
    hourly_sales_by_store,
    invoices_by_store,
    invoices_with_store,
    member_key,
    rewards_by_customer,
    sales_by_city,
    stores_by_key,
    stores_with_sales,
    time_sort,
)
from google.protobuf.timestamp_pb2 import Timestamp

from statecast.sales.v1.city_sales_pb2 import CitySales
from statecast.sales.v1.customer_rewards_pb2 import CustomerRewards
from statecast.sales.v1.hourly_sales_pb2 import HourlySales
from statecast.sales.v1.invoice_pb2 import CustomerType, Invoice
from statecast.sales.v1.invoice_with_store_pb2 import InvoiceWithStore
from statecast.sales.v1.store_pb2 import Store, StoreChange
from statecast.sales.v1.store_sales_pb2 import StoreSales
from statecast.sales.v1.store_with_sales_pb2 import StoreWithSales

PRIME, NON_PRIME = CustomerType.CUSTOMER_TYPE_PRIME, CustomerType.CUSTOMER_TYPE_NON_PRIME
ELEVEN = 1_724_842_800
"""2024-08-28, eleven o'clock in UTC."""
FIRST_HOUR = "s1\0" + "2024-08-28T11:00:00.000000Z\0" + "2024-08-28T12:00:00.000000Z"
SECOND_HOUR = "s1\0" + "2024-08-28T12:00:00.000000Z\0" + "2024-08-28T13:00:00.000000Z"


def invoice(number: str, total: int, card: str = "ann", kind: "CustomerType.ValueType" = PRIME) -> Invoice:
    return Invoice(
        invoice_number=number, store_id="s1", customer_card_no=card, customer_type=kind, total_amount_cents=total
    )


def made_at(number: str, total: int, seconds: int) -> Invoice:
    row = invoice(number, total)
    row.created_at.CopyFrom(Timestamp(seconds=ELEVEN + seconds, nanos=999_999_000))
    return row


def test_rewards_are_of_prime_invoices_and_points_are_whole_per_invoice() -> None:
    repeated = invoice("i2", 399)
    invoices = [
        invoice("i1", 199),
        repeated,
        invoice("i3", 5000, kind=NON_PRIME),
        invoice("i4", 1000, card="ben"),
        invoice("i5", 1000),
        repeated,
    ]

    assert rewards_by_customer(invoices) == {
        "ann": CustomerRewards(customer_card_no="ann", invoices=3, spent_cents=1598, points=1 + 3 + 10),
        "ben": CustomerRewards(customer_card_no="ben", invoices=1, spent_cents=1000, points=10),
    }


def test_invoices_stand_under_their_store_by_the_time_when_they_were_made() -> None:
    made = made_at("i1", 150, 0)

    assert invoices_by_store([made, made]) == {member_key("s1", time_sort(made.created_at), "i1"): made}


def test_sales_are_summed_by_the_hour_in_which_the_invoice_was_made() -> None:
    invoices = [made_at("i1", 150, 0), made_at("i2", 201, 3599), made_at("i3", 400, 3600), made_at("i1", 150, 0)]
    first, second = Timestamp(seconds=ELEVEN), Timestamp(seconds=ELEVEN + 3600)

    assert hourly_sales_by_store(invoices) == {
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


def stores_of(*rows: Store) -> History:
    history = History(StoreChange, "stores")
    for row in rows:
        history.snapshot(row)
    return history


def test_an_invoice_stands_with_its_store_as_it_ever_was_or_without() -> None:
    stores = stores_of(Store(store_id="s1", name="Corner"), Store(store_id="s2", name="Plaza"))
    stores.update("s1", name="Square")
    row = invoice("i1", 100)

    assert invoices_with_store([row, *stores.changes, row]) == {
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
    invoices = [invoice(f"i{number}", 100) for number in range(4)]
    for row, store in zip(invoices, ("s1", "s2", "s3", "s4"), strict=True):
        row.store_id = store

    assert sales_by_city([*invoices, *stores.changes, *invoices]) == {
        "Pune": CitySales(city="Pune", invoices=2, amount_cents=200),
        "Delhi": CitySales(city="Delhi", invoices=1, amount_cents=100),
    }


def test_where_a_store_has_moved_no_topic_says_in_which_city_it_sold() -> None:
    stores = stores_of(Store(store_id="s1", city="Pune"))
    stores.update("s1", city="Delhi")

    with pytest.raises(AssertionError, match="s1 has moved"):
        sales_by_city([invoice("i1", 100), *stores.changes])


def test_a_store_stands_with_all_that_it_has_sold_or_with_nothing() -> None:
    stores = stores_of(Store(store_id="s1", name="Corner"), Store(store_id="s2", name="Plaza"))
    stores.update("s1", name="Square")

    assert stores_with_sales([invoice("i1", 150), *stores.changes, invoice("i2", 200)]) == {
        "s1": StoreWithSales(
            store=Store(store_id="s1", name="Square"), sales=StoreSales(store_id="s1", invoices=2, amount_cents=350)
        ),
        "s2": StoreWithSales(store=Store(store_id="s2", name="Plaza")),
    }
