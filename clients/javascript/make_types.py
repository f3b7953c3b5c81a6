"""Writes the types of the contract, as proto3 JSON, for TypeScript: `python clients/javascript/make_types.py`."""

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages

from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor, FileDescriptor

import statecast

HEAD = "// Made of the contract by make_types.py: change that, and not this file."
FILE = Path(__file__).parent / "contract.d.ts"
FRAMES = "statecast.push.v2"
"""The package in which every field may be absent; rows always have their fields without presence."""
NOT_FOR_CLIENTS = tuple(f"statecast.{name}." for name in ("change", "jobs", "query", "shard", "state"))

TEXTS = {FieldDescriptor.CPPTYPE_INT64, FieldDescriptor.CPPTYPE_UINT64}
NUMBERS = {
    FieldDescriptor.CPPTYPE_INT32,
    FieldDescriptor.CPPTYPE_UINT32,
    FieldDescriptor.CPPTYPE_DOUBLE,
    FieldDescriptor.CPPTYPE_FLOAT,
}
WELL_KNOWN = {
    "google.protobuf.Struct": "Record<string, unknown>",
    "google.protobuf.Value": "unknown",
    "google.protobuf.Timestamp": "string",
    "google.protobuf.Duration": "string",
    "google.protobuf.Any": "unknown",
}


def types_text() -> str:
    """Returns the content of the file."""
    files = sorted(_files(), key=lambda file: file.name)
    text = "\n".join(part for file in files for part in _of_file(file))
    return f"{HEAD}\n\n{text}"


def _files() -> Iterator[FileDescriptor]:
    for module in walk_packages(statecast.__path__, "statecast."):
        if module.name.endswith("_pb2") and not module.name.startswith(NOT_FOR_CLIENTS):
            yield import_module(module.name).DESCRIPTOR


def _of_file(file: FileDescriptor) -> Iterator[str]:
    for enum in file.enum_types_by_name.values():
        values = " | ".join(f'"{name}"' for name in enum.values_by_name)
        yield f"/** `{enum.full_name}` */\nexport type {_name(enum)} = {values};\n"
    for message in file.message_types_by_name.values():
        if not any(_is_hidden(field) for field in message.fields):
            yield from _of_message(message)


def _is_hidden(field: FieldDescriptor) -> bool:
    """Returns whether clients have no use for the field's type: only services read changes."""
    described = field.message_type or field.enum_type
    return described is not None and described.full_name.startswith(NOT_FOR_CLIENTS)


def _of_message(message: Descriptor) -> Iterator[str]:
    fields = "".join(f"  {each.name}{'?' if _may_be_absent(each) else ''}: {_type(each)};\n" for each in message.fields)
    yield f"/** `{message.full_name}` */\nexport interface {_name(message)} {{\n{fields}}}\n"
    for enum in message.enum_types:
        values = " | ".join(f'"{name}"' for name in enum.values_by_name)
        yield f"/** `{enum.full_name}` */\nexport type {_name(enum)} = {values};\n"
    for nested in message.nested_types:
        if not nested.GetOptions().map_entry:
            yield from _of_message(nested)


def _may_be_absent(field: FieldDescriptor) -> bool:
    return field.has_presence or field.full_name.startswith(f"{FRAMES}.")


def _type(field: FieldDescriptor) -> str:
    entry = field.message_type
    if entry is not None and entry.GetOptions().map_entry:
        return f"Record<string, {_one(entry.fields_by_name['value'])}>"
    return f"{_one(field)}[]" if field.is_repeated else _one(field)


def _one(field: FieldDescriptor) -> str:
    if field.message_type is not None:
        return WELL_KNOWN.get(field.message_type.full_name) or _name(field.message_type)
    if field.enum_type is not None:
        return _name(field.enum_type)
    if field.cpp_type == FieldDescriptor.CPPTYPE_BOOL:
        return "boolean"
    return "number" if field.cpp_type in NUMBERS else "string"


def _name(described: Descriptor | EnumDescriptor) -> str:
    """Returns the name in TypeScript: `OddsV1Market` for `statecast.odds.v1.Market`, the last part for a frame."""
    parts = described.full_name.removeprefix("statecast.").split(".")
    if described.full_name.startswith(FRAMES):
        parts = parts[2:]
    return "".join(part[0].upper() + part[1:] for part in parts)


if __name__ == "__main__":
    FILE.write_text(types_text(), encoding="utf-8")
