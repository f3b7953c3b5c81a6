"""Changes as the contract has them."""

from datetime import UTC, datetime

from cdc_simulator.change_events import OPERATIONS, change_event
from cdc_simulator.domains.orders.row import OrderRow
from cdc_simulator.domains.orders.table import ORDERS
from cdc_simulator.logged_change import LoggedChange
from statecast.change.v1.change_pb2 import Operation
from statecast.orders.v1.order_pb2 import OrderChange

COMMIT_US = 1_724_848_496_123_456


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


def test_every_operation_of_the_contract_is_known() -> None:
    assert set(OPERATIONS.values()) == set(Operation.values()) - {Operation.OPERATION_UNSPECIFIED}
