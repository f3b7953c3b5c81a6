"""Reads the stores file and checks it against the contract: an error names the file, the key and the nearest name."""

import json
from collections.abc import Collection, Mapping
from difflib import get_close_matches
from importlib.resources import files
from pathlib import Path

import yaml
from google.protobuf.descriptor_pb2 import DescriptorProto, FileDescriptorSet
from pydantic import BaseModel, ValidationError

from query_service.errors import StoresFileError
from query_service.storage.store_definition import BYTES, JSON, EngineChoice, History, StoreDefinition, StoresFile

_MODELS: Mapping[int | str, type[BaseModel]] = {"store": EngineChoice, "history": History}


def read_stores(path: Path) -> tuple[StoreDefinition, ...]:
    """Returns the stores of a file by name. Raises StoresFileError with one line."""
    try:
        content = yaml.safe_load(path.read_text())
        stores = StoresFile.model_validate(content).stores
    except OSError as error:
        raise StoresFileError(f"the stores file {path} cannot be read: {error.strerror}") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise StoresFileError(f"{path} is not YAML: {' '.join(str(error).split())}") from error
    except ValidationError as error:
        raise StoresFileError(f"{path}: {'; '.join(_complaints(error))}") from error
    if not stores:
        raise StoresFileError(f"{path}: stores is empty: name at least one")
    for index, store in enumerate(stores):
        wrong = _wrong(store, stores[:index])
        if wrong is not None:
            raise StoresFileError(f"{path}: stores[{index}].{wrong}")
    return tuple(sorted(stores, key=lambda store: store.name))


def stores_schema() -> str:
    """Returns the JSON Schema of the file, for editors."""
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", **StoresFile.model_json_schema()}
    return json.dumps(schema, indent=2) + "\n"


def nearest(name: str, names: Collection[str]) -> str:
    """Returns what an error says about a name that is not among the names."""
    close = get_close_matches(name, names, n=1, cutoff=0.5)
    return f"did you mean `{close[0]}`?" if close else f"there are: {', '.join(sorted(names)) or 'none'}"


def contract_messages() -> Mapping[str, frozenset[str]]:
    """Returns the full names of the messages in the installed contract, each with the names of its fields."""
    descriptors = FileDescriptorSet.FromString(files("statecast").joinpath("contract.binpb").read_bytes())
    return {
        name: frozenset(field.name for field in found.field)
        for file in descriptors.file
        for message in file.message_type
        for name, found in _nested(file.package, message)
    }


def _nested(scope: str, message: DescriptorProto) -> list[tuple[str, DescriptorProto]]:
    name = f"{scope}.{message.name}"
    return [(name, message), *(inner for nested in message.nested_type for inner in _nested(name, nested))]


def _wrong(store: StoreDefinition, earlier: tuple[StoreDefinition, ...]) -> str | None:
    if store.name in {each.name for each in earlier}:
        return f"name `{store.name}` is there twice: remove one"
    if store.topic in {each.topic for each in earlier}:
        return f"topic `{store.topic}` is another store's: remove one"
    return _wrong_message(store) or _wrong_combination(store)


def _wrong_message(store: StoreDefinition) -> str | None:
    if store.message in (JSON, BYTES):
        if not store.plain:
            return f"message `{store.message}` needs `format: plain`: add it, or name a message of the contract"
        if store.owner is not None and store.message == BYTES:
            return "owner needs fields, and `message: bytes` has none: remove it, or name a message"
        return None
    messages = contract_messages()
    if store.message not in messages:
        known = {name for name in messages if name.startswith("statecast.")} | ({JSON, BYTES} if store.plain else set())
        return f"message `{store.message}` is not in the contract: {nearest(store.message, known)}"
    fields = messages[store.message]
    if store.owner is not None and store.owner not in fields:
        return f"owner `{store.owner}` is not a field of {store.message}: {nearest(store.owner, fields)}"
    return None


def _wrong_combination(store: StoreDefinition) -> str | None:
    if not store.plain:
        if store.retain is not None:
            return "retain needs `format: plain`: remove it; rows of a keyed topic are deleted by the processor"
        if store.partitioner != "murmur2":
            return "partitioner needs `format: plain`: remove it; keyed topics are partitioned by murmur2"
    history = store.history
    if history is not None and (history.versions is None) == (history.age is None):
        return "history takes either `versions` or `age`: name one of them"
    if history is not None and history.age is not None and store.retain is not None and history.age > store.retain:
        return "history.age is above retain, and versions go with their rows: lower it"
    return None


def _complaints(error: ValidationError) -> list[str]:
    return [_complaint(tuple(each["loc"]), each["type"], each["msg"]) for each in error.errors()]


def _complaint(place: tuple[int | str, ...], kind: str, message: str) -> str:
    where = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in place).lstrip(".") or "the file"
    if kind == "extra_forbidden":
        model = StoresFile if len(place) == 1 else _MODELS.get(place[-2], StoreDefinition)
        return f"{where} is not known: {nearest(str(place[-1]), model.model_fields.keys())}"
    return f"{where}: {message.removeprefix('Value error, ')}"
