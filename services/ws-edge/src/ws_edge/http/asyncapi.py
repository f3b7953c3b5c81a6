"""The AsyncAPI document of the sockets: their addresses, and the frames as JSON Schemas of the contract's messages.

The schemas (draft 7) describe proto3 JSON with the contract's names and comments. Fields without a value are left out,
so no field is required; of a `oneof` exactly one is.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorProto, FileDescriptorSet

from statecast import commented_descriptor_set

PACKAGE = "statecast.push.v1."
SCHEMAS = "#/components/schemas/"
STREAM_FRAMES = ("ClientFrame", "ServerFrame")
ORDER_FRAMES = ("OrderUpdatesRequest", "OrderUpdatesReply")
BINARY = (
    "With the subprotocol `statecast.push.v1+proto` the same frames are binary Protobuf messages; otherwise they are "
    "JSON in text frames, with the field names of the contract."
)
POSITION = "With the other half of the position: only what is newer is told."
JSON = "JSON in text frames."

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
    """The document, for AsyncAPI 3.0."""
    frames = STREAM_FRAMES + ORDER_FRAMES
    contract = FileDescriptorSet.FromString(commented_descriptor_set())
    schemas = schemas_of(contract, *(PACKAGE + name for name in frames))
    channels = _channels()
    description = "Live state by WebSocket. Calls are described in /openapi.json."
    return {
        "asyncapi": "3.0.0",
        "info": {"title": "Statecast edge", "version": "1", "description": description},
        "defaultContentType": "application/json",
        "channels": channels,
        "operations": _operations(channels),
        "components": {"messages": {name: _message(name, schemas) for name in frames}, "schemas": schemas},
    }


def _channels() -> dict[str, Document]:
    ticket = {"ticket": {"type": "string", "description": "What `POST /v1/tickets` has answered."}}
    by_ticket = {"type": "object", "properties": ticket, "required": ["ticket"]}
    channel = {"channel": {"description": "The id that `POST /v1/channels` has answered."}}
    order = {"order_id": {"description": "The order that is watched from the beginning."}}
    start = {
        "interval_ms": {"type": "integer", "minimum": 0, "description": "The shortest time between two frames."},
        "position_epoch": {"type": "integer", "description": POSITION},
        "position_offset": {"type": "integer", "description": POSITION},
    }
    by_order: Document = {"parameters": order, "query": {"type": "object", "properties": start}}
    begins, browsers = (
        f"It starts with the frame `begin`. {BINARY}",
        "The same for browsers, whose sockets cannot send headers",
    )
    return {
        "stream": _channel("/v1/stream", "Any key of any store, and ranges of groups"),
        "ticketStream": _channel("/v1/tickets/stream", browsers, query=by_ticket),
        "channelStream": _channel(
            "/v1/channels/{channel}/stream",
            "A channel, whose subscriptions are made by calls",
            begins,
            parameters=channel,
        ),
        "orders": _channel("/update/orders", "Orders by their ids", JSON, ORDER_FRAMES),
        "order": _channel(
            "/update/orders/{order_id}", "One order at once, and more by frames", JSON, ORDER_FRAMES, **by_order
        ),
    }


def _channel(
    address: str,
    title: str,
    description: str = BINARY,
    frames: tuple[str, str] = STREAM_FRAMES,
    parameters: Document | None = None,
    query: Document | None = None,
) -> Document:
    messages = {name: {"$ref": f"#/components/messages/{name}"} for name in frames}
    channel: Document = {"address": address, "title": title, "description": description, "messages": messages}
    if parameters:
        channel["parameters"] = parameters
    return channel | {"bindings": {"ws": {"method": "GET"} | ({"query": query} if query else {})}}


def _operations(channels: Mapping[str, Document]) -> Document:
    """The edge receives the first kind of frame of a channel and sends the second."""
    return {
        f"{name}.{action}": {
            "action": action,
            "channel": {"$ref": f"#/channels/{name}"},
            "messages": [{"$ref": f"#/channels/{name}/messages/{frame}"}],
        }
        for name, channel in channels.items()
        for action, frame in zip(("receive", "send"), channel["messages"], strict=True)
    }


def _message(name: str, schemas: Mapping[str, Schema]) -> Document:
    full_name = PACKAGE + name
    summary = schemas[full_name].get("description", "")
    return {"name": full_name, "title": name, "summary": summary, "payload": {"$ref": SCHEMAS + full_name}}


def schemas_of(contract: FileDescriptorSet, *names: str) -> dict[str, Schema]:
    """The schemas of the named messages, and of all that they refer to, by full name.

    Raises KeyError for a message that the contract does not have, and for a type that has no schema here.
    """
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
