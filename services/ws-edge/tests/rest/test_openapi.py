"""The documents are consistent, their schemas follow the contract, and frames and bodies conform to them."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from jsonschema import Draft7Validator
from websockets.asyncio.client import ClientConnection

from statecast.orders.v1.order_pb2 import Order, OrderStatus
from testkit.ws_edge.edge import RunningEdge
from ws_edge.model.states import StoreKey
from ws_edge.rest.openapi import SCHEMAS, schemas_of, sockets_document

DOCUMENT = sockets_document()
ORDER = StoreKey("orders-by-key", "12345")
CUSTOMER = "customer-0001"


def check(frame: dict[str, Any], message: str) -> dict[str, Any]:
    """Returns the frame when it is as the document says."""
    schema = {"allOf": [DOCUMENT["components"]["messages"][message]["payload"]], "components": DOCUMENT["components"]}
    Draft7Validator(schema).validate(frame)
    return frame


def references(part: object) -> Iterator[str]:
    if isinstance(part, dict):
        yield from (part["$ref"],) if "$ref" in part else ()
    children = part.values() if isinstance(part, dict) else part if isinstance(part, list) else ()
    for child in children:
        yield from references(child)


def resolve(reference: str) -> object:
    part: Any = DOCUMENT
    for name in reference.removeprefix("#/").split("/"):
        part = part[name]
    return part


async def say(socket: ClientConnection, frame: dict[str, Any], answers: int = 1) -> list[dict[str, Any]]:
    """Sends a frame and returns the answers; checks all of them against the schema."""
    message, reply = ("OrderUpdatesRequest", "OrderUpdatesReply") if "type" in frame else ("ClientFrame", "ServerFrame")
    await socket.send(json.dumps(check(frame, message)))
    return [check(json.loads(await socket.recv()), reply) for _ in range(answers)]


async def test_the_document_is_served_to_everybody(edge: RunningEdge) -> None:
    async with edge.client(headers={}) as stranger:
        served = (await stranger.get("/asyncapi.json")).json()

    assert served == DOCUMENT
    assert {channel["address"] for channel in served["channels"].values()} == {
        "/v1/stream",
        "/v1/tickets/stream",
        "/update/orders",
        "/update/orders/{order_id}",
    }


def test_every_reference_resolves_and_every_schema_is_valid() -> None:
    assert all(resolve(reference) for reference in references(DOCUMENT))
    for schema in DOCUMENT["components"]["schemas"].values():
        Draft7Validator.check_schema(schema)
        assert schema["description"]
        assert all(field.get("description") for field in schema.get("properties", {}).values())


def test_the_messages_of_an_operation_are_those_of_its_channel() -> None:
    for operation in DOCUMENT["operations"].values():
        (message,) = operation["messages"]

        assert message["$ref"].startswith(operation["channel"]["$ref"] + "/messages/")


async def test_the_frames_of_a_session_on_the_stream_are_as_described(edge: RunningEdge) -> None:
    row = Order(order_id=ORDER.group, customer_id=CUSTOMER, status=OrderStatus.ORDER_STATUS_PAID)
    edge.query.put(ORDER, row)
    edge.query.put(StoreKey("orders-by-customer", CUSTOMER, "2024-08-28T12:34:56.123456Z", ORDER.group), row)
    watches = [
        {"id": 1, "store": ORDER.store, "group": ORDER.group, "interval_ms": 0, "delta": True, "times": True},
        {"id": 2, "store": "orders-by-customer", "group": CUSTOMER, "token": "x", "fields": ["order_id"]},
        {"id": 3, "store": "nowhere", "group": "a"},
    ]
    async with edge.socket("/v1/stream") as socket:
        frames = [check(json.loads(await socket.recv()), "ServerFrame")]
        frames += await say(socket, {"watch": watches}, 3)
        edge.query.delete(ORDER)
        frames.append(check(json.loads(await socket.recv()), "ServerFrame"))
        frames += await say(socket, {"unwatch": [1]})
        frames += await say(socket, {"renew": {"ticket": "made-up"}})
        frames += await say(socket, {"ping": {}})
        await socket.send(json.dumps({"watc": []}))
        frames.append(check(json.loads(await socket.recv()), "ServerFrame"))
    parts = {part for frame in frames for part in frame}

    assert parts == {"id", "hello", "watching", "rows", "token", "current", "ended", "error", "ping", "warning"}


async def test_the_frames_of_a_session_about_orders_are_as_described(edge: RunningEdge) -> None:
    edge.query.put(ORDER, Order(order_id=ORDER.group, customer_id=CUSTOMER))
    async with edge.socket() as socket:
        frames = await say(socket, {"type": "order_status_updates_request", "data": {"order_id": ORDER.group}})
        frames += await say(socket, {"type": "order_updates_cancel", "order_id": ORDER.group})
        frames += await say(socket, {"type": "make_me_rich", "order_id": ORDER.group})

    assert [frame["type"] for frame in frames] == ["order_status_update", "order_updates_cancelled", "error"]


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        ({"wach": []}, "ClientFrame"),
        ({"watch": [{"id": "a"}]}, "ClientFrame"),
        ({"ping": {"blind": [{"lag_s": "long"}]}}, "ServerFrame"),
        ({"type": "order_updates_request", "interval_ms": "soon"}, "OrderUpdatesRequest"),
    ],
)
def test_a_malformed_frame_does_not_conform(frame: dict[str, Any], message: str) -> None:
    schema = {"allOf": [DOCUMENT["components"]["messages"][message]["payload"]], "components": DOCUMENT["components"]}

    assert not Draft7Validator(schema).is_valid(frame)


@pytest.mark.parametrize(
    ("method", "path", "call"),
    [
        ("GET", "/v1/stores/orders-by-customer/rows?group=customer-0001", "/v1/stores/{store}/rows"),
        ("GET", "/v1/stores/orders-by-customer/rows?group=customer-0002", "/v1/stores/{store}/rows"),
        ("GET", "/v1/stores", "/v1/stores"),
        ("GET", "/v1/consumer", "/v1/consumer"),
        ("POST", "/v1/tickets", "/v1/tickets"),
        ("POST", "/v1/channels", "/v1/channels"),
    ],
)
async def test_bodies_of_calls_are_as_described(keeping_edge: RunningEdge, method: str, path: str, call: str) -> None:
    async with keeping_edge.client() as client:
        document = (await client.get("/openapi.json")).json()
        answer = await client.request(method, path)
    described = document["paths"][call][method.lower()]["responses"][str(answer.status_code)]
    schema = {"allOf": [described["content"]["application/json"]["schema"]], "components": document["components"]}

    Draft7Validator(schema).validate(answer.json())


def test_a_schema_comes_with_all_it_refers_to_and_the_contracts_comments() -> None:
    schemas = schemas_of("statecast.push.v2.ClientFrame")
    watch = schemas["statecast.push.v2.Watch"]

    assert set(schemas) == {
        f"statecast.push.v2.{name}"
        for name in ("ClientFrame", "Watch", "Step", "PlaceToken", "Renew", "Ping", "Bookmark", "Blind")
    }
    assert watch["description"].startswith("A key, a range of a group")
    assert watch["properties"]["steps"]["items"] == {"$ref": SCHEMAS + "statecast.push.v2.Step"}
    assert watch["properties"]["interval_ms"]["type"] == "integer"
    assert watch["additionalProperties"] is False


def test_64_bit_numbers_may_be_strings_and_enums_are_names() -> None:
    schemas = schemas_of("statecast.state.v1.Position", "statecast.query.v1.Readers")

    assert schemas["statecast.state.v1.Position"]["properties"]["offset"]["type"] == ["string", "integer"]
    assert "READERS_OWNER" in schemas["statecast.query.v1.Readers"]["enum"]


def test_an_unknown_message_raises_key_error() -> None:
    with pytest.raises(KeyError, match="Nowhere"):
        schemas_of("statecast.push.v2.Nowhere")
