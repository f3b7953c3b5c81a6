"""The plain model that a keyed topic must equal: the value of each key after all changes."""

from collections.abc import Callable, Iterable

from google.protobuf.timestamp_pb2 import Timestamp

from statecast.orders.v1.order_pb2 import Order, OrderChange
from statecast.state.v1.state_pb2 import StateRecord
from testkit.stream_processor.process import Processor, wait_until
from testkit.topics import Record

Keys = Callable[[Order], set[str]]
State = dict[str, tuple[int, Order]]


def by_order(row: Order) -> set[str]:
    """Returns the key of orders-by-key."""
    return {row.order_id}


def by_customer(row: Order) -> set[str]:
    """Returns the key of orders-by-customer."""
    return {f"{row.customer_id}\0{_text(row.updated_at)}\0{row.order_id}"}


def by_item(row: Order) -> set[str]:
    """Returns the keys of orders-by-item."""
    return {f"{item.item_id}\0{_text(row.placed_at)}\0{row.order_id}" for item in row.items}


def _text(moment: Timestamp) -> str:
    return moment.ToDatetime().strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def model(changes: Iterable[OrderChange], keys: Keys) -> State:
    """Applies the last change of each order: key → (sequence, row)."""
    rows: dict[str, tuple[int, Order]] = {}
    for change in sorted(changes, key=lambda each: each.source.log_sequence_number):
        rows.pop(change.before.order_id, None)
        if change.HasField("after"):
            rows[change.after.order_id] = (change.source.log_sequence_number, change.after)
    return {key: line for line in rows.values() for key in keys(line[1])}


def read_fenced(records: Iterable[Record]) -> dict[str, StateRecord]:
    """Returns a fenced reader's state, by key: a record counts only when its (epoch, sequence) is higher."""
    newest: dict[str, tuple[StateRecord, bool]] = {}
    for record in records:
        state = StateRecord.FromString(record.value or record.headers["statecast-state-record"])
        held, _ = newest.get(key := record.key.decode(), (StateRecord(), False))
        if (state.epoch, state.sequence) > (held.epoch, held.sequence):
            newest[key] = state, record.value is not None
    return {key: state for key, (state, exists) in newest.items() if exists}


def read_orders(records: Iterable[Record]) -> State:
    """Returns the orders that a reader with the fence holds."""
    return {key: (held.sequence, Order.FromString(held.payload)) for key, held in read_fenced(records).items()}


def wait_for_state(read: Callable[[], Iterable[Record]], expected: State, processor: Processor) -> None:
    """Waits until `read` returns exactly the expected state; reports the differences when it never does."""

    def difference() -> str:
        held = read_orders(read())
        keys = sorted(key for key in held.keys() | expected.keys() if held.get(key) != expected.get(key))
        newest = max((sequence for sequence, _ in held.values()), default=0)
        text = f"{len(keys)} of {len(expected)} keys differ, for example {keys[:3]}; the newest is of {newest}"
        return f"{text}: {processor.get('/metrics')[1]} {processor.log[-4000:]}"

    wait_until(lambda: read_orders(read()) == expected, difference)
