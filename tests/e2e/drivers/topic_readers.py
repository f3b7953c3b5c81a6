"""Reads the topics of the pipelines: changes, keyed states, dead letters, and the versions of each order."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from google.protobuf import json_format
from google.protobuf.timestamp_pb2 import Timestamp

from drivers.pipeline_models import NUL
from statecast.orders.v1.order_pb2 import Order, OrderChange
from statecast.state.v1.state_pb2 import StateRecord
from statecast_client.push import Row
from testkit.topics import Record, count_records, read_topic
from testkit.waiting import eventually

TOMBSTONE_HEADER = "statecast-state-record"
DEAD_LETTER_TOPIC = "orders.dead-letter"


def count_changes(bootstrap: str, topic: str = "orders") -> int:
    """Returns how many records the log has ever held."""
    return count_records(bootstrap, topic)


def read_changes(bootstrap: str, topic: str = "orders") -> list[OrderChange]:
    """Returns every decodable change between the log's start and its end as it is now."""
    return [OrderChange.FromString(record.value or b"") for record in read_topic(bootstrap, topic)]


@dataclass
class KeyedTopic:
    """`live`: the payload under each key; `partitions`: where the records of each group stand."""

    live: dict[str, bytes] = field(default_factory=dict)
    partitions: dict[str, set[int]] = field(default_factory=dict)


def materialize(records: Iterable[Record]) -> KeyedTopic:
    """Returns the topic's rows. A record is applied only when its (epoch, sequence) is its key's highest so far."""
    topic = KeyedTopic()
    held: dict[str, tuple[int, int]] = {}
    for record in records:
        key = record.key.decode()
        state = StateRecord.FromString(record.headers[TOMBSTONE_HEADER] if record.value is None else record.value)
        topic.partitions.setdefault(key.split(NUL)[0], set()).add(record.partition)
        version = (state.epoch, state.sequence)
        if key in held and version <= held[key]:
            continue
        held[key] = version
        if record.value is None:
            topic.live.pop(key, None)
        else:
            topic.live[key] = state.payload
    return topic


@dataclass(frozen=True)
class DeadLetter:
    """One record of the dead-letter topic; header values as text."""

    key: bytes
    value: bytes | None
    headers: dict[str, str]


class DeadLetters:
    """The dead-letter topic of `orders`."""

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap

    def until_value(self, value: bytes) -> DeadLetter:
        """Returns the letter that holds this value; AssertionError when none comes."""

        def find() -> DeadLetter:
            letters = [letter for letter in self.all() if letter.value == value]
            assert letters, f"no dead letter holds {value!r}"
            return letters[0]

        return eventually(find, timeout_s=30)

    def all(self) -> list[DeadLetter]:
        """Returns every letter up to now."""
        return [
            DeadLetter(record.key, record.value, {name: str(text, "utf-8") for name, text in record.headers.items()})
            for record in read_topic(self._bootstrap, DEAD_LETTER_TOPIC)
        ]


class OrderHistory:
    """The changes of each order, the first one first: a version is the place of a change among them."""

    def __init__(self, changes: Iterable[OrderChange]) -> None:
        """Takes changes of which those of one order are in their order."""
        self.changes: defaultdict[str, list[OrderChange]] = defaultdict(list)
        for change in changes:
            self.changes[change.after.order_id or change.before.order_id].append(change)

    def newest(self, order_id: str) -> int:
        """Returns the last version of an order."""
        return len(self.changes[order_id]) - 1

    def orders_of(self, customer: str) -> dict[str, Order]:
        """Returns the rows of a customer after all changes, by their ids."""
        rows = {order_id: changes[-1].after for order_id, changes in self.changes.items()}
        return {order_id: row for order_id, row in rows.items() if row.customer_id == customer}

    def version(self, order_id: str, row: Row) -> int:
        """Returns the version of a row, by its commit time. Raises AssertionError unless the log has the same row."""
        committed = Timestamp()
        committed.FromJsonString(row.commit_time or "")
        for version, change in enumerate(self.changes[order_id]):
            if change.source.commit_time == committed:
                assert order_of(row) == change.after, f"{order_id}: {change} has come as {row}"
                return version
        raise AssertionError(f"{order_id}: the log has no such change: {row}")


def order_of(row: Row) -> Order:
    """Returns the order of a row."""
    return json_format.ParseDict(row.value, Order())


def read_history(bootstrap: str, prefix: str) -> OrderHistory:
    """Returns the history of the orders with the prefix in their ids, from the records now on the topic."""
    records = read_topic(bootstrap, "orders")
    return OrderHistory(
        OrderChange.FromString(record.value or b"") for record in records if record.key.startswith(prefix.encode())
    )
