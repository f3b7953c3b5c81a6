"""The AsyncAPI document of the sockets: their addresses, and the frames as the contract has them."""

from typing import Any

from google.protobuf.descriptor_pb2 import FileDescriptorSet

from statecast import commented_descriptor_set
from ws_edge.web.json_schemas import schemas_of

PACKAGE = "statecast.push.v1."
PLACE = "#/components/schemas/"
STREAM_FRAMES = ("ClientFrame", "ServerFrame")
ORDER_FRAMES = ("OrderUpdatesRequest", "OrderUpdatesReply")
BINARY = (
    "With the subprotocol `statecast.push.v1+proto` the same frames are binary Protobuf messages; otherwise they are "
    "JSON in text frames, with the field names of the contract."
)
POSITION = "With the other half of the position: only what is newer is told."
CHANNELS: dict[str, dict[str, Any]] = {
    "stream": {
        "address": "/v1/stream",
        "title": "Any key of any store, and ranges of groups",
        "description": BINARY,
        "frames": STREAM_FRAMES,
    },
    "ticketStream": {
        "address": "/v1/tickets/stream",
        "title": "The same for browsers, whose sockets cannot send headers",
        "description": BINARY,
        "frames": STREAM_FRAMES,
        "query": {"ticket": {"type": "string", "description": "What `POST /v1/tickets` has answered."}},
        "required": ["ticket"],
    },
    "channelStream": {
        "address": "/v1/channels/{channel}/stream",
        "title": "A channel, whose subscriptions are made by calls",
        "description": f"It starts with the frame `begin`. {BINARY}",
        "frames": STREAM_FRAMES,
        "parameters": {"channel": {"description": "The id that `POST /v1/channels` has answered."}},
    },
    "orders": {
        "address": "/update/orders",
        "title": "Orders by their ids",
        "description": "JSON in text frames.",
        "frames": ORDER_FRAMES,
    },
    "order": {
        "address": "/update/orders/{order_id}",
        "title": "One order at once, and more by frames",
        "description": "JSON in text frames.",
        "frames": ORDER_FRAMES,
        "parameters": {"order_id": {"description": "The order that is watched from the beginning."}},
        "query": {
            "interval_ms": {"type": "integer", "minimum": 0, "description": "The shortest time between two frames."},
            "position_epoch": {"type": "integer", "description": POSITION},
            "position_offset": {"type": "integer", "description": POSITION},
        },
    },
}


def document() -> dict[str, Any]:
    """The document, for AsyncAPI 3.0."""
    contract = FileDescriptorSet.FromString(commented_descriptor_set())
    names = tuple(PACKAGE + name for name in STREAM_FRAMES + ORDER_FRAMES)
    schemas = schemas_of(contract, names, PLACE)
    return {
        "asyncapi": "3.0.0",
        "info": {
            "title": "Statecast edge",
            "version": "1",
            "description": "Live state by WebSocket. Calls are described in /openapi.json.",
        },
        "defaultContentType": "application/json",
        "channels": {name: _channel(channel) for name, channel in CHANNELS.items()},
        "operations": {
            operation: value for name, channel in CHANNELS.items() for operation, value in _operations(name, channel)
        },
        "components": {
            "messages": {name: _message(name, schemas) for name in STREAM_FRAMES + ORDER_FRAMES},
            "schemas": schemas,
        },
    }


def _channel(channel: dict[str, Any]) -> dict[str, Any]:
    described = {name: channel[name] for name in ("address", "title", "description")}
    described["messages"] = {name: {"$ref": f"#/components/messages/{name}"} for name in channel["frames"]}
    if "parameters" in channel:
        described["parameters"] = channel["parameters"]
    handshake: dict[str, Any] = {"method": "GET"}
    if "query" in channel:
        query = {"type": "object", "properties": channel["query"]}
        handshake["query"] = query | ({"required": channel["required"]} if "required" in channel else {})
    return described | {"bindings": {"ws": handshake}}


def _operations(name: str, channel: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """What the edge does: it receives the first kind of frame and sends the second."""
    return [
        (
            f"{name}.{action}",
            {
                "action": action,
                "channel": {"$ref": f"#/channels/{name}"},
                "messages": [{"$ref": f"#/channels/{name}/messages/{frame}"}],
            },
        )
        for action, frame in zip(("receive", "send"), channel["frames"], strict=True)
    ]


def _message(name: str, schemas: dict[str, Any]) -> dict[str, Any]:
    full_name = PACKAGE + name
    summary = schemas[full_name].get("description", "")
    return {"name": full_name, "title": name, "summary": summary, "payload": {"$ref": PLACE + full_name}}
