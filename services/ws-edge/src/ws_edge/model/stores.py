"""The stores that clients may read: the message of their rows, the shape of their keys, and who may see them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import lru_cache
from hashlib import sha256

from google.protobuf.descriptor import FileDescriptor
from google.protobuf.message import Message
from google.protobuf.struct_pb2 import Value

from statecast.row_fields import text_fields
from statecast_service.settings import suggest
from ws_edge.errors import MalformedFrameError, UnavailableError, UnknownStoreError
from ws_edge.model import json_rows
from ws_edge.model.authorization import Consumer, OwnerRule
from ws_edge.model.private_fields import PrivateField

MAX_KEY_PART = 1024
JSON = "json"


@dataclass(frozen=True, slots=True, eq=False)
class Store:
    """One store. `message` is the class of its rows, Value for JSON; `members` is true when a group has many values.

    Two stores are equal when they are one object; `is_like` compares their definitions.
    """

    name: str
    message: type[Message]
    members: bool
    rule: OwnerRule
    max_lag_ms: int | None = None
    """For how long an answer may have been out of date to be of use; None takes any."""
    private: tuple[PrivateField, ...] = ()
    """The fields that only some of those who may see a row see."""
    description: str | None = None
    """One line for people."""
    interval_ms: int | None = None
    """The interval of a subscription that asks for none; None for the edge's own."""

    @property
    def kind(self) -> str:
        """The name of the rows as ListShards has it: the full name of their message, or `json`."""
        return JSON if self.message is Value else self.message.DESCRIPTOR.full_name

    @property
    def definition(self) -> str:
        """Another text for each message of the rows, and each form that it has had, the same at every edge."""
        return f"{self.kind} {_definition(self.message.DESCRIPTOR.file)}"

    def is_like(self, other: "Store") -> bool:
        """Returns whether both are defined alike, their message included."""
        # The class of the rows is made anew with each reading of the mounted descriptors.
        names = (each.name for each in fields(self) if each.name != "message")
        return (
            all(getattr(self, name) == getattr(other, name) for name in names) and self.definition == other.definition
        )

    def decode(self, payload: bytes) -> Message:
        """Returns the row of a payload. Raises DecodeError."""
        return json_rows.decode(payload) if self.message is Value else self.message.FromString(payload)

    def owner_of(self, row: Message) -> str:
        """As OwnerRule.owner_of."""
        field = self.rule.field
        if field is None:
            return self.rule.owner_of("")
        return self.rule.owner_of(self.text_of(row, field))

    def shows_changes(self, consumer: Consumer) -> bool:
        """Returns whether the consumer may know when a row was changed.

        With private fields that is for staff alone: others would learn of changes that they are not shown.
        """
        return consumer.staff or not self.private

    @property
    def text_fields(self) -> frozenset[str]:
        """The fields of a row that `text_of` takes; those of JSON are not known."""
        return text_fields(self.message)

    def text_of(self, row: Message, field: str) -> str:
        """Returns the content of a text field of the row."""
        return json_rows.text_of(row, field) if self.message is Value else str(getattr(row, field))


Stores = Mapping[str, Store]
FindStore = Callable[[str], Store]
"""Is `find`, with the stores of an edge and a consumer."""


def check_key_part(name: str, part: str) -> None:
    """Raises MalformedFrameError when no key can have this part."""
    if "\0" in part:
        raise MalformedFrameError(f"{name} contains a NUL character")
    if len(part) > MAX_KEY_PART:
        raise MalformedFrameError(f"{name} is longer than {MAX_KEY_PART} characters")


def readable(stores: Stores, consumer: Consumer) -> list[Store]:
    """Returns the stores that can have rows for the consumer.

    Raises UnavailableError while no query service has listed its stores.
    """
    if not stores:
        raise UnavailableError("this edge does not know its stores yet: no query service has listed any; try again")
    return [store for store in stores.values() if store.rule.has_rows_for(consumer)]


def find(stores: Stores, consumer: Consumer, name: str) -> Store:
    """Returns the store. Raises UnknownStoreError, which names the nearest, and as `readable` does.

    A store for staff is unknown to everybody else, so that no answer depends on its fields or shape.
    """
    store = stores.get(name)
    if store is not None and store.rule.has_rows_for(consumer):
        return store
    names = [each.name for each in readable(stores, consumer)]
    raise UnknownStoreError(f"there is no store {name[:80]!r} that you may read; {suggest(name, names)}")


@lru_cache(maxsize=256)
def _definition(file: FileDescriptor) -> str:
    """Returns a digest of the file that defines a message and of all files that it imports."""
    files = [file]
    for each in files:  # the loop appends the imports
        files += [other for other in each.dependencies if other not in files]
    return sha256(b"".join(each.serialized_pb for each in files)).hexdigest()
