"""Reads the stores file and checks it against the contract: an error names the file, the key and the nearest name."""

from collections.abc import Collection
from difflib import get_close_matches
from importlib.resources import files
from pathlib import Path
from typing import Annotated

import yaml
from google.protobuf.descriptor_pb2 import DescriptorProto, FileDescriptorSet
from pydantic import BaseModel, ConfigDict, StringConstraints, ValidationError

from query_service.errors import StoresFileError

TopicName = Annotated[str, StringConstraints(pattern=r"^[a-zA-Z0-9._-]{1,249}$")]


class StoreDefinition(BaseModel):
    """One store: a keyed topic, and the message that its payloads are."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: TopicName
    topic: TopicName
    message: str


class _StoresFile(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    stores: tuple[StoreDefinition, ...]


def read_stores(path: Path) -> tuple[StoreDefinition, ...]:
    """Returns the stores of a file by name. Raises StoresFileError with one line."""
    try:
        content = yaml.safe_load(path.read_text())
        stores = _StoresFile.model_validate(content).stores
    except OSError as error:
        raise StoresFileError(f"the stores file {path} cannot be read: {error.strerror}") from error
    except yaml.YAMLError as error:
        raise StoresFileError(f"{path} is not YAML: {' '.join(str(error).split())}") from error
    except ValidationError as error:
        raise StoresFileError(f"{path}: {'; '.join(_complaints(error))}") from error
    _check(path, stores)
    return tuple(sorted(stores, key=lambda store: store.name))


def nearest(name: str, names: Collection[str]) -> str:
    """Returns what an error says about a name that is not among the names."""
    close = get_close_matches(name, names, n=1, cutoff=0.5)
    return f"did you mean `{close[0]}`?" if close else f"there are: {', '.join(sorted(names)) or 'none'}"


def contract_messages() -> frozenset[str]:
    """Returns the full names of the messages in the installed contract."""
    descriptors = FileDescriptorSet.FromString(files("statecast").joinpath("contract.binpb").read_bytes())
    return frozenset(
        name for file in descriptors.file for message in file.message_type for name in _nested(file.package, message)
    )


def _nested(scope: str, message: DescriptorProto) -> list[str]:
    name = f"{scope}.{message.name}"
    return [name, *(inner for nested in message.nested_type for inner in _nested(name, nested))]


def _check(path: Path, stores: tuple[StoreDefinition, ...]) -> None:
    if not stores:
        raise StoresFileError(f"{path}: stores is empty: name at least one")
    messages = contract_messages()
    for index, store in enumerate(stores):
        if store.message not in messages:
            known = nearest(store.message, {each for each in messages if each.startswith("statecast.")})
            raise StoresFileError(f"{path}: stores[{index}].message `{store.message}` is not in the contract: {known}")
        if store.name in {earlier.name for earlier in stores[:index]}:
            raise StoresFileError(f"{path}: stores[{index}].name `{store.name}` is there twice: remove one")
        if store.topic in {earlier.topic for earlier in stores[:index]}:
            raise StoresFileError(f"{path}: stores[{index}].topic `{store.topic}` is another store's: remove one")


def _complaints(error: ValidationError) -> list[str]:
    return [_complaint(tuple(each["loc"]), each["type"], each["msg"]) for each in error.errors()]


def _complaint(place: tuple[int | str, ...], kind: str, message: str) -> str:
    where = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in place).lstrip(".") or "the file"
    if kind == "extra_forbidden":
        fields = _StoresFile.model_fields if len(place) == 1 else StoreDefinition.model_fields
        return f"{where} is not known: {nearest(str(place[-1]), fields.keys())}"
    return f"{where}: {message}"
