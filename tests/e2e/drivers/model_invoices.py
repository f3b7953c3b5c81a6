"""What the keyed topics of the invoices' pipelines must hold, computed from the change logs alone."""

from collections.abc import Iterable, Mapping
from datetime import timedelta

from google.protobuf.timestamp_pb2 import Timestamp

from drivers.model_changes import Change, ordered, primary_key, row_of, rows_after
from drivers.model_keys import Keyed, member_key, time_sort
from statecast.sales.v1.customer_rewards_pb2 import CustomerRewards
from statecast.sales.v1.hourly_sales_pb2 import HourlySales
from statecast.sales.v1.invoice_pb2 import CustomerType, Invoice, InvoiceChange
from statecast.sales.v1.invoice_with_store_pb2 import InvoiceWithStore
from statecast.sales.v1.store_pb2 import StoreChange

HOUR_S = 3600
CENTS_PER_POINT = 100


def stores_by_key(changes: Iterable[StoreChange]) -> Keyed:
    """The newest row of each store."""
    return {row.store_id: row for row in rows_after(changes)}


def points(invoice: Invoice) -> int:
    """What the invoice earns a PRIME customer."""
    return invoice.total_amount_cents // CENTS_PER_POINT


def rewards_by_customer(changes: Iterable[InvoiceChange]) -> Keyed:
    """What the PRIME invoices of each card sum up to; nothing of a card without them."""
    rewards: Keyed = {}
    for row in rows_after(changes):
        if row.customer_type == CustomerType.CUSTOMER_TYPE_PRIME:
            card = row.customer_card_no
            customer = rewards.setdefault(card, CustomerRewards(customer_card_no=card))
            customer.invoices += 1
            customer.spent_cents += row.total_amount_cents
            customer.points += points(row)
    return rewards


def invoices_with_store(changes: Iterable[InvoiceChange | StoreChange]) -> Mapping[str, list[InvoiceWithStore]]:
    """For each invoice all that may stand there: it without its store, and with each row that the store ever had.

    When the invoice was joined is not in the log, and a later change of the store does not write the invoice again.
    """
    of_table: dict[str, list[Change]] = {"stores": [], "invoices": []}
    for change in changes:
        of_table[change.source.table].append(change)
    stores = [change.after for change in ordered(of_table["stores"]) if change.HasField("after")]
    return {
        row.invoice_number: [
            InvoiceWithStore(invoice=row),
            *(InvoiceWithStore(invoice=row, store=store) for store in stores if store.store_id == row.store_id),
        ]
        for row in rows_after(of_table["invoices"])
    }


def hourly_sales_by_store(changes: Iterable[InvoiceChange], lateness: timedelta | None = None) -> Keyed:
    """What each store sold in each hour, under the key of store, beginning and end of the hour.

    A change that was committed more than `lateness` after the end of its hour changes nothing; None: none is too late.
    """
    in_time: dict[str, Invoice] = {}
    for change in ordered(changes):
        if lateness is None or _lag_s(change) <= lateness.total_seconds():
            in_time.pop(primary_key(row_of(change)), None)
            if change.HasField("after"):
                in_time[primary_key(change.after)] = change.after
    sales: Keyed = {}
    for row in in_time.values():
        start, end = _hour(row)
        key = member_key(row.store_id, time_sort(start), time_sort(end))
        hour = sales.setdefault(key, HourlySales(store_id=row.store_id, window_start=start, window_end=end))
        hour.invoices += 1
        hour.amount_cents += row.total_amount_cents
        hour.average_cents = hour.amount_cents / hour.invoices
    return sales


def _hour(row: Invoice) -> tuple[Timestamp, Timestamp]:
    start_s = row.created_at.seconds // HOUR_S * HOUR_S
    return Timestamp(seconds=start_s), Timestamp(seconds=start_s + HOUR_S)


def _lag_s(change: Change) -> float:
    """How long after the end of the invoice's hour the change was committed."""
    _, end = _hour(row_of(change))
    return (change.source.commit_time.ToNanoseconds() - end.ToNanoseconds()) / 1e9
