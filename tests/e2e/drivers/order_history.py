"""The change log of each order as it stands on its topic, and which of its versions a watcher was told."""

from collections import defaultdict
from collections.abc import Iterable

from drivers.topic import read_topic
from statecast.orders.v1.order_pb2 import Order, OrderChange
from statecast.push.v1.range_pb2 import RangeChanged
from statecast.push.v1.subscription_pb2 import Removed
from statecast_client.push import Update

UNKNOWN = -1
"""The version of an order that has not been placed yet."""


class OrderHistory:
    """The changes of each order, the first one first: a version is the place of a change among them."""

    def __init__(self, changes: Iterable[OrderChange]) -> None:
        """Takes changes of which those of one order are in their order."""
        self.changes: defaultdict[str, list[OrderChange]] = defaultdict(list)
        for change in changes:
            self.changes[change.after.order_id or change.before.order_id].append(change)

    def newest(self, order_id: str) -> int:
        """The last version of an order."""
        return len(self.changes[order_id]) - 1

    def orders_of(self, customer: str) -> dict[str, Order]:
        """The rows of a customer after all changes, by their ids."""
        rows = {order_id: changes[-1].after for order_id, changes in self.changes.items()}
        return {order_id: row for order_id, row in rows.items() if row.customer_id == customer}

    def version(self, order_id: str, told: Update | RangeChanged) -> int:
        """The version that an update tells, by its commit; AssertionError unless the log has it just so."""
        row = row_of(told)
        if not told.HasField("commit_time"):
            assert row is None, f"{order_id}: a row without a commit: {told}"
            return UNKNOWN
        for version, change in enumerate(self.changes[order_id]):
            if change.source.commit_time == told.commit_time:
                assert row is None or row == change.after, f"{order_id}: {change} was told as {told}"
                return version
        raise AssertionError(f"{order_id}: the log has no such change: {told}")


def row_of(told: Update | RangeChanged) -> Order | None:
    """The order in an update; None when it tells that there is none."""
    if isinstance(told, Removed) or not told.HasField("row"):
        return None
    row = Order()
    assert told.row.Unpack(row), f"another message than an order: {told}"
    return row


def read_history(bootstrap: str, prefix: str) -> OrderHistory:
    """The history of the orders whose ids begin with the prefix, from the topic as it stands now."""
    records = read_topic(bootstrap, "orders")
    return OrderHistory(
        OrderChange.FromString(record.value or b"") for record in records if record.key.startswith(prefix.encode())
    )
