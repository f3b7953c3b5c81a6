"""The AsyncAPI document of the sockets: a template, and the frames as JSON Schemas of the contract's messages.

The schemas (draft 7) describe proto3 JSON with the contract's names and comments. Fields without a value are left out,
so no field is required; of a `oneof` exactly one is.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import yaml
from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorProto, FileDescriptorSet

from statecast import commented_descriptor_set

TEMPLATE = Path(__file__).with_name("asyncapi.yaml")
SCHEMAS = "#/components/schemas/"

Document = dict[str, Any]
Schema = dict[str, Any]
Comments = Mapping[tuple[int, ...], str]
"""The comments of a file, by the path of what they describe."""
Field = FieldDescriptorProto

WELL_KNOWN: Mapping[str, Schema] = {
    "google.protobuf.Timestamp": {"type": "string", "format": "date-time"},
    "google.protobuf.Any": {"type": "object", "properties": {"@type": {"type": "string"}}, "required": ["@type"]},
}
LONG: Schema = {"type": ["string", "integer"], "pattern": "^-?[0-9]+$"}
SCALARS: Mapping[int, Schema] = {
    Field.TYPE_STRING: {"type": "string"},
    Field.TYPE_BOOL: {"type": "boolean"},
    Field.TYPE_INT32: {"type": "integer"},
    Field.TYPE_INT64: LONG,
    Field.TYPE_UINT64: LONG,
}
MESSAGES, ENUMS, FIELDS = 4, 5, 2
"""The numbers of these fields in FileDescriptorProto and DescriptorProto; paths to comments consist of them."""


def document() -> Document:
    """The document, for AsyncAPI 3.0: the template with the schemas of the messages that it names."""
    template: Document = yaml.safe_load(TEMPLATE.read_text(encoding="utf-8"))
    messages = template["components"]["messages"].values()
    contract = FileDescriptorSet.FromString(commented_descriptor_set())
    schemas = schemas_of(contract, *(message["name"] for message in messages))
    for message in messages:
        message["summary"] = schemas[message["name"]].get("description", "")
    template["components"]["schemas"] = schemas
    return template


def schemas_of(contract: FileDescriptorSet, *names: str) -> dict[str, Schema]:
    """The schemas of the named messages and all they refer to, by full name. Raises KeyError for what has none."""
    factories = {name: make for file in contract.file for name, make in _types(file)}
    schemas: dict[str, Schema] = {}
    pending = list(names)
    while pending:
        name = pending.pop()
        if name not in schemas:
            schemas[name] = factories[name]()
            pending += [reference.removeprefix(SCHEMAS) for reference in _references(schemas[name])]
    return schemas


def _types(file: FileDescriptorProto) -> Iterator[tuple[str, Callable[[], Schema]]]:
    """The names of a file's messages and enums, each with a factory of its schema."""
    comments = {tuple(at.path): " ".join(at.leading_comments.split()) for at in file.source_code_info.location}
    for number, message in enumerate(file.message_type):
        yield f"{file.package}.{message.name}", partial(_object, message, comments, (MESSAGES, number))
    for number, enum in enumerate(file.enum_type):
        schema = {"type": "string", "enum": [value.name for value in enum.value]}
        yield f"{file.package}.{enum.name}", partial(_described, schema, comments.get((ENUMS, number), ""))


def _object(message: DescriptorProto, comments: Comments, path: tuple[int, ...]) -> Schema:
    properties = {
        field.name: _property(field, comments.get((*path, FIELDS, number), ""))
        for number, field in enumerate(message.field)
    }
    schema: Schema = {"type": "object", "properties": properties, "additionalProperties": False}
    choices = [field.name for field in message.field if field.HasField("oneof_index") and not field.proto3_optional]
    if choices:
        schema["oneOf"] = [{"required": [name]} for name in choices]
    return _described(schema, comments.get(path, ""))


def _property(field: Field, comment: str) -> Schema:
    if field.type in (Field.TYPE_MESSAGE, Field.TYPE_ENUM):
        name = field.type_name.removeprefix(".")
        schema = WELL_KNOWN.get(name, {"$ref": SCHEMAS + name})
    else:
        schema = SCALARS[field.type]
    if field.label == Field.LABEL_REPEATED:
        schema = {"type": "array", "items": schema}
    if "$ref" in schema and comment:
        schema = {"allOf": [schema]}  # validators ignore what stands beside a reference
    return _described(schema, comment)


def _described(schema: Schema, comment: str) -> Schema:
    return {"description": comment, **schema} if comment else schema


def _references(schema: object) -> Iterator[str]:
    if isinstance(schema, dict):
        if "$ref" in schema:
            yield schema["$ref"]
        schema = list(schema.values())
    if isinstance(schema, list):
        for child in schema:
            yield from _references(child)
