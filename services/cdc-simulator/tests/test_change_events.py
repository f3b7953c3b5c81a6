"""Changes of the log, and the messages that they become."""

from datetime import UTC, datetime

import pytest

from cdc_simulator.change_events import OPERATIONS, LoggedChange, change_event
from cdc_simulator.domains.bookings import BOOKINGS, BookingRow
from cdc_simulator.domains.invoices import INVOICES, CustomerType, InvoiceRow, Line
from cdc_simulator.domains.orders import ORDERS, OrderRow
from statecast.change.v1.change_pb2 import Operation
from statecast.orders.v1.order_pb2 import OrderChange

COMMIT_US = 1_724_848_496_123_456


def test_a_change_knows_what_happened(row: OrderRow) -> None:
    shapes = [(True, None, row), (False, None, row), (False, row, row), (False, row, None)]
    operations = [LoggedChange(ORDERS, 1, "tx-1", 0, snapshot, old, new).operation for snapshot, old, new in shapes]

    assert operations == ["snapshot", "create", "update", "delete"]


def test_a_change_knows_its_row_also_when_the_row_is_gone(row: OrderRow) -> None:
    assert LoggedChange(ORDERS, 1, "tx-1", 0, False, row, None).row == row


def test_a_change_without_a_row_is_damage() -> None:
    with pytest.raises(ValueError, match="change 7 has no row"):
        _ = LoggedChange(ORDERS, 7, "tx-1", 0, False, None, None).row


def test_the_key_of_a_change_is_that_of_the_new_row_or_of_the_row_that_is_gone() -> None:
    old = BookingRow(1, "customer-0001", 5, "Köln Hbf", "Wien Hbf", 6)
    new = old._replace(customer_id="customer-0002")
    keys = [
        BOOKINGS.key(LoggedChange(BOOKINGS, 1, "tx-1", 0, False, before, after).row)
        for before, after in ((None, old), (old, new), (new, None))
    ]

    assert keys == ["customer-0001", "customer-0002", "customer-0002"]


def change(before: OrderRow | None, after: OrderRow | None, *, snapshot: bool = False) -> OrderChange:
    event = change_event(LoggedChange(ORDERS, 9, "tx-8", COMMIT_US, snapshot, before, after), 77, COMMIT_US + 5)
    assert isinstance(event, OrderChange)
    return event


def test_the_source_says_where_and_when(row: OrderRow) -> None:
    event = change(None, row)

    assert (event.source.epoch, event.source.log_sequence_number) == (77, 9)
    assert (event.source.transaction_id, event.source.table) == ("tx-8", "orders")
    assert event.source.commit_time.ToDatetime(UTC) == datetime(2024, 8, 28, 12, 34, 56, 123456, UTC)
    assert event.captured_at.ToMicroseconds() == COMMIT_US + 5


def test_an_insert_has_no_before(row: OrderRow) -> None:
    event = change(None, row)

    assert event.operation == Operation.OPERATION_CREATE
    assert (event.HasField("before"), event.HasField("after"), event.source.snapshot) == (False, True, False)


def test_an_update_has_both(row: OrderRow) -> None:
    event = change(row, row._replace(total_cents=1))

    assert event.operation == Operation.OPERATION_UPDATE
    assert (event.before.total_cents, event.after.total_cents) == (399, 1)


def test_a_delete_has_no_after(row: OrderRow) -> None:
    event = change(row, None)

    assert event.operation == Operation.OPERATION_DELETE
    assert (event.HasField("before"), event.HasField("after")) == (True, False)


def test_a_row_of_the_snapshot_says_so(row: OrderRow) -> None:
    event = change(None, row, snapshot=True)

    assert event.operation == Operation.OPERATION_SNAPSHOT
    assert event.source.snapshot


def test_a_new_row_of_a_table_of_events_is_sent_as_it_is_and_a_deleted_one_is_not() -> None:
    invoice = InvoiceRow(1, "store-01", "4000", CustomerType.PRIME, None, (Line("a", "b", 1, 2),), 2, "INR", 3)
    made = [
        change_event(LoggedChange(INVOICES, 9, "tx-8", COMMIT_US, snapshot, None, invoice), 77, COMMIT_US)
        for snapshot in (True, False)
    ]

    assert made == [INVOICES.message(invoice)] * 2
    assert change_event(LoggedChange(INVOICES, 9, "tx-8", COMMIT_US, False, invoice, None), 77, COMMIT_US) is None


def test_every_operation_of_the_contract_is_known() -> None:
    assert set(OPERATIONS.values()) == set(Operation.values()) - {Operation.OPERATION_UNSPECIFIED}
