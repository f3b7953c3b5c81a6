"""The stores that clients may read: the message of their rows, the shape of their keys, and who may see them."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from google.protobuf.struct_pb2 import Value
from pydantic import BaseModel, Field, ValidationError

from statecast.descriptors import MessageTypes
from statecast_service.errors import SettingsError
from statecast_service.settings import suggest
from statecast_service.yaml_files import read_yaml
from ws_edge import json_rows
from ws_edge.authorization import OwnerRule
from ws_edge.errors import MalformedFrameError, UnknownStoreError
from ws_edge.private_fields import PrivateField
from ws_edge.states import AnyKey, RangeKey

SHIPPED = Path(__file__).with_name("stores.yaml")
MAX_KEY_PART = 1024
JSON = "json"


@dataclass(frozen=True, slots=True)
class Store:
    """One store. `message` is the class of its rows, Value for JSON; `members` is true when a group has many values."""

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
        """The name of the rows in the stores file: the full name of their message, or `json`."""
        return JSON if self.message is Value else self.message.DESCRIPTOR.full_name

    def is_like(self, other: "Store") -> bool:
        """Whether both have the same entry in the stores file, and the same definition of their message."""
        # The class of the rows is made anew with each reading of the mounted descriptors.
        mine, theirs = (replace(each, message=Value) for each in (self, other))
        is_defined_alike = self.message is other.message or _definition(self.message) == _definition(other.message)
        return mine == theirs and self.kind == other.kind and is_defined_alike

    def decode(self, payload: bytes) -> Message:
        """The row of a payload. Raises DecodeError."""
        return json_rows.decode(payload) if self.message is Value else self.message.FromString(payload)

    def owner_of(self, row: Message) -> str:
        """As OwnerRule.owner_of."""
        field = self.rule.field
        if field is None:
            return self.rule.owner_of("")
        return self.rule.owner_of(self.text_of(row, field))

    @property
    def text_fields(self) -> frozenset[str]:
        """The fields of a row that `text_of` takes; those of JSON are not known."""
        texts = (field for field in self.message.DESCRIPTOR.fields if field.type == FieldDescriptor.TYPE_STRING)
        return frozenset(field.name for field in texts if not field.is_repeated)

    def text_of(self, row: Message, field: str) -> str:
        """Returns the content of a text field of the row."""
        return json_rows.text_of(row, field) if self.message is Value else str(getattr(row, field))

    def check(self, key: AnyKey) -> None:
        """Raises MalformedFrameError when this store cannot have the key or range."""
        if not key.group:
            raise MalformedFrameError(f"the {'range' if isinstance(key, RangeKey) else 'key'} names no group")
        if isinstance(key, RangeKey):
            if not self.members:
                raise MalformedFrameError(f"{self.name} has one value per group: subscribe to its keys")
            if key.limit < 0:
                raise MalformedFrameError(f"limit is {key.limit}: it is a number of members, and 0 takes the default")
            if key.sort_to and key.sort_to.encode() < key.sort_from.encode():
                raise MalformedFrameError("sort_to is below sort_from: swap them")
        elif self.members and not (key.sort and key.member):
            raise MalformedFrameError(f"a key of {self.name} needs group, sort and member")
        elif not self.members and (key.sort or key.member):
            raise MalformedFrameError(f"a key of {self.name} has a group only")
        for name, part in zip(key._fields[1:4], key[1:4], strict=True):
            check_key_part(name, part)


Stores = Mapping[str, Store]


def check_key_part(name: str, part: str) -> None:
    """Raises MalformedFrameError when no key can have this part."""
    if "\0" in part:
        raise MalformedFrameError(f"{name} contains a NUL character")
    if len(part) > MAX_KEY_PART:
        raise MalformedFrameError(f"{name} is longer than {MAX_KEY_PART} characters")


def find(stores: Stores, name: str) -> Store:
    """Returns the store; raises UnknownStoreError, which names the nearest one."""
    store = stores.get(name)
    if store is None:
        raise UnknownStoreError(f"there is no store {name[:80]!r}; {suggest(name, stores)}")
    return store


def read_stores(path: Path, types: MessageTypes | None = None) -> Stores:
    """Reads and checks the stores file. Raises SettingsError that names the file and the fault in it.

    Rows are messages of `types`, by default of the contract.
    """
    try:
        file = _StoresFile.model_validate(read_yaml(path))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise SettingsError(f"the stores file {path} is wrong at {where or 'its top'}: {first['msg']}") from error
    except ValueError as error:
        raise SettingsError(f"the stores file {path} {error}") from error
    types = types or MessageTypes.read()
    return {entry.name: _store(entry, types, path) for entry in file.stores}


def _definition(message: type[Message]) -> Mapping[str, bytes]:
    """Returns the file that defines the message and all files that it imports, serialized, by their names."""
    files, found = [message.DESCRIPTOR.file], dict[str, bytes]()
    for file in files:  # the loop appends the imports
        if file.name not in found:
            found[file.name] = file.serialized_pb
            files += file.dependencies
    return found


class _Owner(BaseModel, extra="forbid"):
    field: str
    group: bool = False


class _Private(BaseModel, extra="forbid"):
    path: str
    owner: str


class _Entry(BaseModel, extra="forbid"):
    name: str
    message: str
    keeps: Literal["one", "members"]
    owner: Literal["staff", "everyone"] | _Owner
    private: list[_Private] = []
    description: str | None = None
    interval_ms: int | None = Field(None, ge=1)


class _StoresFile(BaseModel, extra="forbid"):
    stores: list[_Entry]


def _store(entry: _Entry, types: MessageTypes, path: Path) -> Store:
    where = f"the stores file {path}, store {entry.name}"
    try:
        message = Value if entry.message == JSON else types.message_class(entry.message)
    except KeyError as error:
        hint = suggest(entry.message, types.rows | {JSON})
        raise SettingsError(f"{where}: no message {entry.message!r} in the contract, nor mounted; {hint}") from error
    private = tuple(PrivateField(tuple(each.path.split(".")), each.owner) for each in entry.private)
    for each in private if message is not Value else ():
        try:
            each.check(message)
        except ValueError as error:
            raise SettingsError(f"{where}, private {'.'.join(each.path)}: {error}") from error
    if isinstance(entry.owner, str):
        rule = OwnerRule(None, everyone=entry.owner == "everyone")
    else:
        rule = OwnerRule(entry.owner.field, entry.owner.group)
    store = Store(
        entry.name,
        message,
        entry.keeps == "members",
        rule,
        private=private,
        description=entry.description,
        interval_ms=entry.interval_ms,
    )
    if isinstance(entry.owner, _Owner) and message is not Value and entry.owner.field not in store.text_fields:
        hint = suggest(entry.owner.field, store.text_fields)
        raise SettingsError(f"{where}: {entry.message} has no string field {entry.owner.field!r}; {hint}")
    return store
