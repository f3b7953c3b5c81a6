"""The plain model that a keyed topic must equal: what stands under which key after all changes."""

from collections.abc import Callable, Iterable

from google.protobuf.timestamp_pb2 import Timestamp

from statecast.orders.v1.order_pb2 import Order, OrderChange
from statecast.state.v1.state_pb2 import StateRecord
from stream_processor.testing.process import Processor, Record, wait_until

Keys = Callable[[Order], set[str]]
State = dict[str, tuple[int, Order]]


def by_order(row: Order) -> set[str]:
    """The key of orders-by-key."""
    return {row.order_id}


def by_customer(row: Order) -> set[str]:
    """The key of orders-by-customer."""
    return {f"{row.customer_id}\0{_text(row.updated_at)}\0{row.order_id}"}


def by_item(row: Order) -> set[str]:
    """The keys of orders-by-item."""
    return {f"{item.item_id}\0{_text(row.placed_at)}\0{row.order_id}" for item in row.items}


def _text(moment: Timestamp) -> str:
    return moment.ToDatetime().strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def model(changes: Iterable[OrderChange], keys: Keys) -> State:
    """The last change of each order decides: key → (sequence, row)."""
    rows: dict[str, tuple[int, Order]] = {}
    for change in sorted(changes, key=lambda each: each.source.log_sequence_number):
        rows.pop(change.before.order_id, None)
        if change.HasField("after"):
            rows[change.after.order_id] = (change.source.log_sequence_number, change.after)
    return {key: line for line in rows.values() for key in keys(line[1])}


def read_back(records: Iterable[Record]) -> State:
    """What a reader with the fence holds: a record counts only when its (epoch, sequence) is higher."""
    held: dict[str, tuple[tuple[int, int], Order | None]] = {}
    for record in records:
        state = StateRecord.FromString(record.value or record.headers["statecast-state-record"])
        order = (state.epoch, state.sequence)
        if record.key not in held or order > held[record.key][0]:
            held[record.key] = (order, Order.FromString(state.payload) if record.value else None)
    return {key: (order[1], row) for key, (order, row) in held.items() if row is not None}


def wait_for_state(read: Callable[[], Iterable[Record]], wanted: State, processor: Processor) -> None:
    """Waits until what `read` gives holds exactly the wanted state; says what differs when it never does."""

    def difference() -> str:
        found = read_back(read())
        keys = sorted(key for key in found.keys() | wanted.keys() if found.get(key) != wanted.get(key))
        newest = max((sequence for sequence, _ in found.values()), default=0)
        told = f"{len(keys)} of {len(wanted)} keys differ, for example {keys[:3]}; the newest is of {newest}"
        return f"{told}: {processor.get('/metrics')[1]} {processor.log[-4000:]}"

    wait_until(lambda: read_back(read()) == wanted, difference)
