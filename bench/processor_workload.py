"""The changes that the processor's benchmark sends, serialized before the clock runs."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from statecast.change.v1.change_pb2 import OPERATION_CREATE, OPERATION_UPDATE
from statecast.orders.v1.order_pb2 import OrderChange, OrderStatus
from statecast.portfolio.v1.open_position_pb2 import OpenPositionChange
from statecast.sales.v1.invoice_pb2 import CustomerType, InvoiceChange
from statecast.sales.v1.loyalty_notification_pb2 import LoyaltyNotification
from statecast.state.v1.state_pb2 import StateRecord

ROWS = 50_000
"""The rows of the source; each is created first, then they are changed in turn, so that no batch holds one twice."""
GROUPS = 20_000  # the groups that they lie in; every tenth change moves its row to another
STAMP_S = 1_700_000_000

POSITIONS = {
    "topic": "open-positions",
    "message": "statecast.portfolio.v1.OpenPositionChange",
    "key": "position_id",
}
"""The source of us-share-holders here, without the pipeline before it."""
INVOICES = {"topic": "invoices", "message": "statecast.sales.v1.InvoiceChange", "key": "invoice_number"}
"""Changes of invoices, where a pipeline ships for events."""
SUMS = {"aggregate": {"positions": "count(*)", "shares": "sum(amount)"}}
MAXIMA = {"aggregate": {"positions": "count(*)", "shares": "max(amount)"}}
TOLD = {"operations": ["create", "update", "snapshot"], "totals": {"total_points": "sum(total_amount_cents div 100)"}}
"""Corrections tell the total too, or most changes of the workload would make no record."""
SALES = {"topic": "sales-by-store", "message": "statecast.sales.v1.StoreSales", "as": "sales", "type": "outer"}
"""The table that stores-with-sales joins; no store need be there."""
HOPS = {"time": "created_at", "size": "1h", "hop": "10m", "lateness": "7d"}

Sent = tuple[bytes, bytes]  # key and value of a record


def _of_state_record(value: bytes) -> int:
    return StateRecord.FromString(value).source.log_sequence_number - 1


def _of_notification(value: bytes) -> int:
    return LoyaltyNotification.FromString(value).total_amount_cents - 1


@dataclass(frozen=True)
class Shape:
    """One of the benchmark's pipelines, as it ships except for the replaced keys, and the changes that it reads."""

    pipeline: str
    changes: Callable[[int, int], Iterator[Sent]]
    written: Callable[[int], tuple[str, ...]]
    """The subjects of the records of a change, by its index: its row, or the groups that it comes from and to."""
    replaced: Mapping[str, Any] = field(default_factory=dict)
    """Keys of the pipeline's file that are others here."""
    table: str | None = None
    """The pipeline beside it that fills the topic which it reads as a table; that one reads the changes then."""
    table_replaced: Mapping[str, Any] = field(default_factory=dict)
    """Keys of the file of `table` that are others here."""
    modes: tuple[str, ...] = ("realtime", "microbatch")
    index_of: Callable[[bytes], int] = _of_state_record
    """The index of the newest change that a value on the sink is made of."""

    @property
    def pipelines(self) -> tuple[str, ...]:
        """All that run for it, in the order of the data."""
        return (self.pipeline,) if self.table is None else (self.table, self.pipeline)


def _order_changes(first: int, end: int) -> Iterator[Sent]:
    change = OrderChange()
    for row in (change.before, change.after):
        row.status, row.currency, row.total_cents = OrderStatus.ORDER_STATUS_PAID, "EUR", 1000
        row.placed_at.seconds = row.updated_at.seconds = STAMP_S
        for item in ("item-0001", "item-0002"):
            row.items.add(item_id=item, quantity=1, unit_price_cents=500)
    for index in range(first, end):
        number, version = index % ROWS, index // ROWS
        for row, age in ((change.before, version - 1), (change.after, version)):
            row.order_id, row.customer_id = f"order-{number:06d}", f"customer-{_group(number, age):05d}"
            row.updated_at.nanos = (age + 1) * 1000
        yield change.after.order_id.encode(), _sealed(change, index, created=index < ROWS)


def _position_changes(first: int, end: int) -> Iterator[Sent]:
    change = OpenPositionChange()
    for row in (change.before, change.after):
        row.ticker, row.exchange = "AAPL", "NASDAQ"
    for index in range(first, end):
        number, version = index % ROWS, index // ROWS
        for row, age in ((change.before, version - 1), (change.after, version)):
            row.position_id, row.client = f"position-{number:06d}", f"client-{_group(number, age):05d}"
            row.amount = age + 2
        yield change.after.position_id.encode(), _sealed(change, index, created=index < ROWS)


def _new_positions(first: int, end: int) -> Iterator[Sent]:
    change = OpenPositionChange()
    change.after.ticker, change.after.exchange = "AAPL", "NASDAQ"
    for index in range(first, end):
        row = change.after
        row.position_id, row.client = f"position-{index:07d}", f"client-{_group(index, 0):05d}"
        row.amount = index + 1
        yield row.position_id.encode(), _sealed(change, index, created=True)


def _invoice_changes(first: int, end: int) -> Iterator[Sent]:
    change = InvoiceChange()
    for row in (change.before, change.after):
        row.customer_type, row.currency = CustomerType.CUSTOMER_TYPE_PRIME, "EUR"
        row.created_at.seconds = STAMP_S
    for index in range(first, end):
        number, version = index % ROWS, index // ROWS
        for row, age in ((change.before, version - 1), (change.after, version)):
            group = _group(number, age)
            row.invoice_number, row.store_id = f"invoice-{number:06d}", f"store-{group:05d}"
            row.customer_card_no = f"{group:016d}"
            row.total_amount_cents = age * ROWS + number + 1
        yield change.after.invoice_number.encode(), _sealed(change, index, created=index < ROWS)


def _group(number: int, version: int) -> int:
    return (number + (number + version) // 10) % GROUPS


def _sealed(change: OrderChange | OpenPositionChange | InvoiceChange, index: int, *, created: bool) -> bytes:
    """Returns the bytes of the change, which is the one with the log sequence number `index + 1`."""
    change.operation = OPERATION_CREATE if created else OPERATION_UPDATE
    change.source.epoch, change.source.log_sequence_number, change.source.table = 1, index + 1, "rows"
    change.source.commit_time.FromMicroseconds(STAMP_S * 1_000_000 + index)
    if not created:
        return change.SerializeToString()
    insertion = type(change)()
    insertion.CopyFrom(change)  # type: ignore[arg-type]  # of its own type
    insertion.ClearField("before")
    return insertion.SerializeToString()


def _row(index: int) -> tuple[str, ...]:
    return (str(index % ROWS),)


def _new_group(index: int) -> tuple[str, ...]:
    return (str(_group(index, 0)),)


def _groups(index: int) -> tuple[str, ...]:
    number, version = index % ROWS, index // ROWS
    ages = (version - 1, version) if version else (version,)
    return tuple(str(_group(number, age)) for age in ages)


SHAPES = {
    "latest": Shape("orders-by-key", _order_changes, _row),
    "members": Shape("orders-by-customer", _order_changes, _row),
    "aggregate": Shape("us-share-holders", _position_changes, _groups, {"source": POSITIONS, "keep": SUMS}),
    "collect_set": Shape("us-share-holders", _position_changes, _groups, {"source": POSITIONS}),
    "chain": Shape("us-share-holders", _position_changes, _groups, {"keep": SUMS}, table="positions-by-key"),
    "max": Shape(
        "us-share-holders",
        _new_positions,
        _new_group,
        {"source": POSITIONS, "keep": MAXIMA, "insert_only": True},
    ),
    "windows": Shape("hourly-sales-by-store", _invoice_changes, _groups, {"source": INVOICES}),
    "hops": Shape("hourly-sales-by-store", _invoice_changes, _groups, {"source": INVOICES, "window": HOPS}),
    "table_join": Shape(
        "stores-with-sales",
        _invoice_changes,
        _groups,
        {"table_join": SALES},
        table="sales-by-store",
        table_replaced={"source": INVOICES},
        modes=("microbatch",),
    ),
    "totals": Shape(
        "loyalty-notifications",
        _invoice_changes,
        _row,
        {"source": INVOICES, "keep": {"route": TOLD}},
        modes=("microbatch",),
        index_of=_of_notification,
    ),
}


class Bank:
    """Serialized changes of one kind, made once and sent by many measurements, each to a topic of its own."""

    def __init__(self) -> None:
        self._changes: dict[Callable[[int, int], Iterator[Sent]], list[Sent]] = {}

    def changes(self, shape: Shape, count: int) -> list[Sent]:
        """Returns the first `count` changes; there may be more."""
        changes = self._changes.setdefault(shape.changes, [])
        changes.extend(shape.changes(len(changes), count))
        return changes
