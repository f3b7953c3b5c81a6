"""The changes that the processor's benchmark sends, serialized before the clock runs."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from statecast.change.v1.change_pb2 import OPERATION_CREATE, OPERATION_UPDATE
from statecast.orders.v1.order_pb2 import OrderChange, OrderStatus
from statecast.portfolio.v1.open_position_pb2 import OpenPositionChange

ROWS = 50_000
"""The rows of the source; each is created first, then they are changed in turn, so that no batch holds one twice."""
GROUPS = 20_000  # the groups that they lie in; every tenth change moves its row to another
STAMP_S = 1_700_000_000

POSITIONS = {
    "topic": "open-positions",
    "message": "statecast.portfolio.v1.OpenPositionChange",
    "key": "position_id",
}
"""What us-share-holders reads here, without the pipeline before it."""
SUMS = {"aggregate": {"positions": "count(*)", "shares": "sum(amount)"}}

Sent = tuple[bytes, bytes]  # key and value of a record


@dataclass(frozen=True)
class Shape:
    """One of the benchmark's pipelines, as it ships but for what is replaced, and what it reads."""

    pipeline: str
    changes: Callable[[int, int], Iterator[Sent]]
    written: Callable[[int], tuple[str, ...]]
    """What a change, by its index, makes records of: its row, or the groups that it comes from and to."""
    replaced: Mapping[str, Any] = field(default_factory=dict)
    """Keys of the pipeline's file that are others here."""


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
        yield change.after.order_id.encode(), _sealed(change, index)


def _position_changes(first: int, end: int) -> Iterator[Sent]:
    change = OpenPositionChange()
    for row in (change.before, change.after):
        row.ticker, row.exchange = "AAPL", "NASDAQ"
    for index in range(first, end):
        number, version = index % ROWS, index // ROWS
        for row, age in ((change.before, version - 1), (change.after, version)):
            row.position_id, row.client = f"position-{number:06d}", f"client-{_group(number, age):05d}"
            row.amount = age + 2
        yield change.after.position_id.encode(), _sealed(change, index)


def _group(number: int, version: int) -> int:
    return (number + (number + version) // 10) % GROUPS


def _sealed(change: OrderChange | OpenPositionChange, index: int) -> bytes:
    """The bytes of the change, which is the one with the log sequence number `index + 1`."""
    change.operation = OPERATION_UPDATE if index >= ROWS else OPERATION_CREATE
    change.source.epoch, change.source.log_sequence_number, change.source.table = 1, index + 1, "rows"
    change.source.commit_time.seconds = STAMP_S
    if index >= ROWS:
        return change.SerializeToString()
    created = type(change)()
    created.CopyFrom(change)  # type: ignore[arg-type]  # of its own type
    created.ClearField("before")
    return created.SerializeToString()


def _groups(index: int) -> tuple[str, ...]:
    number, version = index % ROWS, index // ROWS
    ages = (version - 1, version) if version else (version,)
    return tuple(str(_group(number, age)) for age in ages)


SHAPES = {
    "latest": Shape("orders-by-key", _order_changes, lambda index: (str(index % ROWS),)),
    "members": Shape("orders-by-customer", _order_changes, lambda index: (str(index % ROWS),)),
    "aggregate": Shape("us-share-holders", _position_changes, _groups, {"source": POSITIONS, "keep": SUMS}),
    "collect_set": Shape("us-share-holders", _position_changes, _groups, {"source": POSITIONS}),
}


class Bank:
    """Serialized changes of one kind, made once and sent by many measurements, each to a topic of its own."""

    def __init__(self) -> None:
        self._changes: dict[Callable[[int, int], Iterator[Sent]], list[Sent]] = {}

    def changes(self, shape: Shape, count: int) -> list[Sent]:
        """The first `count` changes; there may be more."""
        changes = self._changes.setdefault(shape.changes, [])
        changes.extend(shape.changes(len(changes), count))
        return changes
