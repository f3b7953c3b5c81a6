"""Describes the messages of the contract as JSON Schemas (draft 7) of their proto3 JSON, with the contract's comments.

Names are those of the contract. Fields without a value are left out by whoever writes, so none is required; of a
`oneof` exactly one is.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
    FileDescriptorSet,
)

Schema = dict[str, Any]
Kind = FieldDescriptorProto

WELL_KNOWN: Mapping[str, Schema] = {
    "google.protobuf.Timestamp": {"type": "string", "format": "date-time"},
    "google.protobuf.Any": {"type": "object", "properties": {"@type": {"type": "string"}}, "required": ["@type"]},
}
LONG: Schema = {"type": ["string", "integer"], "pattern": "^-?[0-9]+$"}
SCALARS: Mapping[int, Schema] = {
    Kind.TYPE_STRING: {"type": "string"},
    Kind.TYPE_BOOL: {"type": "boolean"},
    Kind.TYPE_INT32: {"type": "integer"},
    Kind.TYPE_INT64: LONG,
    Kind.TYPE_UINT64: LONG,
}
MESSAGES, ENUMS, FIELDS = 4, 5, 2
"""The numbers of these fields in FileDescriptorProto and DescriptorProto, which paths to comments are made of."""


def schemas_of(contract: FileDescriptorSet, roots: tuple[str, ...], place: str) -> dict[str, Schema]:
    """The schemas of the messages named, and of all that they refer to, by full name.

    `place` is where they will stand, for example `#/components/schemas/`. Raises KeyError for a message that the
    contract does not have, or a type that has no schema here.
    """
    known = {name: make for file in contract.file for name, make in _types(file, place)}
    found: dict[str, Schema] = {}
    wanted = list(roots)
    while wanted:
        name = wanted.pop()
        if name not in found:
            found[name] = known[name]()
            wanted += [reference.removeprefix(place) for reference in _references(found[name])]
    return found


def _types(file: FileDescriptorProto, place: str) -> Iterator[tuple[str, Callable[[], Schema]]]:
    """The names of a file's messages and enums, each with what makes its schema."""
    comments = {tuple(at.path): " ".join(at.leading_comments.split()) for at in file.source_code_info.location}
    for number, message in enumerate(file.message_type):
        yield f"{file.package}.{message.name}", partial(_object, message, comments, (MESSAGES, number), place)
    for number, enum in enumerate(file.enum_type):
        yield f"{file.package}.{enum.name}", partial(_described, _words(enum), comments.get((ENUMS, number), ""))


def _object(
    message: DescriptorProto, comments: Mapping[tuple[int, ...], str], path: tuple[int, ...], place: str
) -> Schema:
    properties = {
        field.name: _property(field, comments.get((*path, FIELDS, number), ""), place)
        for number, field in enumerate(message.field)
    }
    schema: Schema = {"type": "object", "properties": properties, "additionalProperties": False}
    choices = [field.name for field in message.field if field.HasField("oneof_index") and not field.proto3_optional]
    if choices:
        schema["oneOf"] = [{"required": [name]} for name in choices]
    return _described(schema, comments.get(path, ""))


def _property(field: FieldDescriptorProto, comment: str, place: str) -> Schema:
    schema = _value(field, place)
    if field.label == Kind.LABEL_REPEATED:
        schema = {"type": "array", "items": schema}
    if "$ref" in schema and comment:
        schema = {"allOf": [schema]}  # what stands beside a reference is not read
    return _described(schema, comment)


def _value(field: FieldDescriptorProto, place: str) -> Schema:
    if field.type not in (Kind.TYPE_MESSAGE, Kind.TYPE_ENUM):
        return dict(SCALARS[field.type])
    name = field.type_name.removeprefix(".")
    return dict(WELL_KNOWN[name]) if name in WELL_KNOWN else {"$ref": place + name}


def _words(enum: EnumDescriptorProto) -> Schema:
    return {"type": "string", "enum": [value.name for value in enum.value]}


def _described(schema: Schema, comment: str) -> Schema:
    return {"description": comment, **schema} if comment else schema


def _references(schema: object) -> Iterator[str]:
    if isinstance(schema, dict):
        for name, value in schema.items():
            if name == "$ref":
                yield value
            else:
                yield from _references(value)
    elif isinstance(schema, list):
        for each in schema:
            yield from _references(each)
