"""The documents that describe the edge, OpenAPI of its calls and AsyncAPI of its sockets, made of the contract.

Bodies and frames are JSON Schemas of messages: proto3 JSON with the contract's names and comments. Fields without a
value may be left out, so no field is required.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any

import yaml
from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorProto, FileDescriptorSet
from google.protobuf.message import Message

from statecast import commented_descriptor_set
from statecast.push.v2.push_pb2 import ErrorBody

TEMPLATE = Path(__file__).with_name("asyncapi.yaml")
SCHEMAS = "#/components/schemas/"

Document = dict[str, Any]
Schema = dict[str, Any]
Comments = Mapping[tuple[int, ...], str]
"""The comments of a file, by the path of the described element."""
Field = FieldDescriptorProto

Responses = dict[int | str, dict[str, Any]]
"""The answers of a call by their status, as OpenAPI has them."""

WELL_KNOWN: Mapping[str, Schema] = {
    "google.protobuf.Timestamp": {"type": "string", "format": "date-time"},
    "google.protobuf.Any": {"type": "object", "properties": {"@type": {"type": "string"}}, "required": ["@type"]},
    "google.protobuf.Struct": {"type": "object"},
    "google.protobuf.Value": {},
}
LONG: Schema = {"type": ["string", "integer"], "pattern": "^-?[0-9]+$"}
SCALARS: Mapping[int, Schema] = {
    Field.TYPE_STRING: {"type": "string"},
    Field.TYPE_BYTES: {"type": "string", "contentEncoding": "base64"},
    Field.TYPE_BOOL: {"type": "boolean"},
    Field.TYPE_DOUBLE: {"type": "number"},
    Field.TYPE_INT32: {"type": "integer"},
    Field.TYPE_UINT32: {"type": "integer"},
    Field.TYPE_INT64: LONG,
    Field.TYPE_UINT64: LONG,
}
MESSAGES, ENUMS, FIELDS = 4, 5, 2
"""The numbers of these fields in FileDescriptorProto and DescriptorProto; paths to comments consist of them."""


def sockets_document() -> Document:
    """Returns the document, for AsyncAPI 3.0: the template with the schemas of the messages that it names."""
    template: Document = yaml.safe_load(TEMPLATE.read_text(encoding="utf-8"))
    messages = template["components"]["messages"].values()
    schemas = schemas_of(*(message["name"] for message in messages))
    for message in messages:
        message["summary"] = schemas[message["name"]].get("description", "")
    template["components"]["schemas"] = schemas
    return template


def calls_document(app: FastAPI) -> Document:
    """Returns the OpenAPI document of the application's calls, with the schemas of the messages that they name."""
    document = get_openapi(title=app.title, version=app.version, description=app.description, routes=app.routes)
    names = {each.removeprefix(SCHEMAS) for each in _references(document["paths"])}
    document.setdefault("components", {})["schemas"] = schemas_of(*sorted(names))
    return document


def content_of(message: type[Message]) -> dict[str, Any]:
    """Returns a body that is the message in JSON."""
    return {"content": {"application/json": {"schema": {"$ref": SCHEMAS + message.DESCRIPTOR.full_name}}}}


def answers(message: type[Message] | None, *failures: int, status: int = 200) -> Responses:
    """Returns the answers of a call: a message or nothing with the status, and an ErrorBody with each other one."""
    fault = {"description": "Why the call failed.", **content_of(ErrorBody)}
    responses: Responses = dict.fromkeys((*failures, 403, 422, 503), fault)
    responses[status] = {"description": "Done."} if message is None else {"description": "Done.", **content_of(message)}
    return responses


def schemas_of(*names: str) -> dict[str, Schema]:
    """Returns the schemas of the named messages and all they refer to, by full name. Raises KeyError for others."""
    factories = _factories()
    schemas: dict[str, Schema] = {}
    pending = list(names)
    while pending:
        name = pending.pop()
        if name not in schemas:
            schemas[name] = factories[name]()
            pending += [reference.removeprefix(SCHEMAS) for reference in _references(schemas[name])]
    return schemas


@cache
def _factories() -> Mapping[str, Callable[[], Schema]]:
    contract = FileDescriptorSet.FromString(commented_descriptor_set())
    return {name: make for file in contract.file for name, make in _types(file)}


def _types(file: FileDescriptorProto) -> Iterator[tuple[str, Callable[[], Schema]]]:
    """Yields the names of a file's messages and enums, each with a factory of its schema."""
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
        schema = {"allOf": [schema]}  # validators ignore other keys beside a reference
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
