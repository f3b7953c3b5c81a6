"""The stores that clients may read: the message of their rows, the shape of their keys, and who may see them."""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Literal

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.descriptor_pb2 import FileDescriptorSet
from google.protobuf.message import Message
from pydantic import BaseModel, ValidationError

from statecast import descriptor_set
from statecast_service.errors import SettingsError
from statecast_service.settings import suggest
from statecast_service.yaml_files import read_yaml
from ws_edge.authorization import OwnerRule
from ws_edge.errors import MalformedFrameError, UnknownStoreError
from ws_edge.states import AnyKey, RangeKey

SHIPPED = Path(__file__).with_name("stores.yaml")
MAX_KEY_PART = 1024


@dataclass(frozen=True, slots=True)
class Store:
    """One store. `message` is the class of its rows; `members` is true when a group has many values."""

    name: str
    message: type[Message]
    members: bool
    rule: OwnerRule
    max_lag_ms: int | None = None
    """For how long an answer may have been out of date to be of use; None takes any."""

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


def read_stores(path: Path) -> Stores:
    """Reads and checks the stores file. Raises SettingsError that names the file and what is wrong in it."""
    try:
        file = _StoresFile.model_validate(read_yaml(path))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise SettingsError(f"the stores file {path} is wrong at {where or 'its top'}: {first['msg']}") from error
    except ValueError as error:
        raise SettingsError(f"the stores file {path} {error}") from error
    sources = _message_sources()
    return {entry.name: _store(entry, sources, path) for entry in file.stores}


class _Owner(BaseModel, extra="forbid"):
    field: str
    group: bool = False


class _Entry(BaseModel, extra="forbid"):
    name: str
    message: str
    keeps: Literal["one", "members"]
    owner: Literal["staff", "everyone"] | _Owner


class _StoresFile(BaseModel, extra="forbid"):
    stores: list[_Entry]


def _message_sources() -> dict[str, str]:
    """The generated module of every message of the contract, by the message's full name."""
    files = FileDescriptorSet.FromString(descriptor_set()).file
    return {
        f"{file.package}.{message.name}": file.name.removesuffix(".proto").replace("/", ".") + "_pb2"
        for file in files
        if file.package.startswith("statecast.")
        for message in file.message_type
    }


def _store(entry: _Entry, sources: Mapping[str, str], path: Path) -> Store:
    where = f"the stores file {path}, store {entry.name}"
    if entry.message not in sources:
        raise SettingsError(
            f"{where}: the contract has no message {entry.message!r}; {suggest(entry.message, sources)}"
        )
    message: type[Message] = getattr(import_module(sources[entry.message]), entry.message.rpartition(".")[2])
    if isinstance(entry.owner, str):
        rule = OwnerRule(None, everyone=entry.owner == "everyone")
    else:
        fields = {field.name for field in message.DESCRIPTOR.fields if field.type == FieldDescriptor.TYPE_STRING}
        if entry.owner.field not in fields:
            hint = suggest(entry.owner.field, fields)
            raise SettingsError(f"{where}: {entry.message} has no string field {entry.owner.field!r}; {hint}")
        rule = OwnerRule(entry.owner.field, entry.owner.group)
    return Store(entry.name, message, entry.keeps == "members", rule)
