"""What unit tests have in Kafka's place: what is written is in the scripted query service at once."""

from collections.abc import Sequence
from typing import Protocol

import grpc
from google.protobuf.message import Message

from ws_edge.errors import UnavailableError
from ws_edge.shared import own_stores
from ws_edge.shared.kafka_writer import Record
from ws_edge.states import StoreKey


class Held(Protocol):
    """The part of the scripted query service that is written to."""

    failing: grpc.StatusCode | None
    offset: int

    def put(self, key: StoreKey, row: Message, /) -> int:
        """Applies a row."""

    def delete(self, key: StoreKey, /) -> int:
        """Applies a deletion."""


class FakeWriter:
    """A Writer; it fails as lookups do."""

    def __init__(self, held: Held) -> None:
        self._held = held

    async def write(self, topic: str, group: str, records: Sequence[Record]) -> int:
        """Applies the records."""
        if self._held.failing is not None:
            raise UnavailableError("scripted to fail")
        for record in records:
            of, sort, member = (*record.key.decode().split("\0"), "", "")[:3]
            assert of == group  # noqa: S101  a record stands in the partition of its group
            key = StoreKey(topic, group, sort, member)
            if record.value is None:
                self._held.delete(key)
            else:
                self._held.put(key, own_stores.ALL[topic].message.FromString(record.value))
        return self._held.offset
