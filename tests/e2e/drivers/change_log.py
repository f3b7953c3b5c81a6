"""Reads the whole change log, as the source wrote it."""

from drivers.topic import count_records, read_topic
from statecast.orders.v1.order_pb2 import OrderChange


def count_changes(bootstrap: str, topic: str = "orders") -> int:
    """How many records the log has ever held."""
    return count_records(bootstrap, topic)


def read_changes(bootstrap: str, topic: str = "orders") -> list[OrderChange]:
    """Returns every decodable change between the log's start and its end as it is now."""
    return [OrderChange.FromString(record.value or b"") for record in read_topic(bootstrap, topic)]
