"""The AsyncAPI document is consistent, its schemas follow the contract, and every frame of a session conforms to it."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorSet
from httpx import AsyncClient
from jsonschema import Draft7Validator
from websockets.asyncio.client import ClientConnection

from statecast import commented_descriptor_set
from statecast.orders.v1.order_pb2 import Order, OrderStatus
from testkit.ws_edge.channels import channel_of, order, orders_of
from testkit.ws_edge.edge import RunningEdge
from ws_edge.http.asyncapi import SCHEMAS, document, schemas_of
from ws_edge.model.states import StoreKey

DOCUMENT = document()
ORDER = StoreKey("orders-by-key", "12345")
CUSTOMER = "customer-0001"
KEY = {"group": ORDER.group}
RANGE = {"store": "orders-by-customer", "group": CUSTOMER, "limit": 5}


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
    """Sends a frame and returns what comes back, all checked."""
    message, reply = ("OrderUpdatesRequest", "OrderUpdatesReply") if "type" in frame else ("ClientFrame", "ServerFrame")
    await socket.send(json.dumps(check(frame, message)))
    return [check(json.loads(await socket.recv()), reply) for _ in range(answers)]


async def test_the_document_is_served_to_everybody(edge: RunningEdge) -> None:
    async with AsyncClient(base_url=f"http://{edge.address}", verify=False) as stranger:
        served = (await stranger.get("/asyncapi.json")).json()

    assert served == DOCUMENT
    assert {channel["address"] for channel in served["channels"].values()} == {
        "/v1/stream",
        "/v1/tickets/stream",
        "/v1/channels/{channel}/stream",
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
    async with edge.socket("/v1/stream") as socket:
        subscribe = {"store": ORDER.store, "key": KEY, "interval_ms": 20}
        frames = await say(socket, {"id": "a", "subscribe": subscribe}, 2)
        edge.query.delete(ORDER)
        frames.append(check(json.loads(await socket.recv()), "ServerFrame"))
        frames += await say(socket, {"id": "b", "subscribe": {**subscribe, "after": {"epoch": "7", "offset": 1}}}, 2)
        frames += await say(socket, {"id": "c", "unsubscribe": {"store": ORDER.store, "key": KEY}})
        frames += await say(socket, {"id": "d", "subscribe": {**subscribe, "store": "nowhere"}})
        frames += await say(socket, {"id": "e", "auth_refresh": {"ticket": "made-up"}})
        frames += await say(socket, {"id": "f", "watch_range": {"range": RANGE, "interval_ms": 0}}, 2)
        frames += await say(socket, {"id": "g", "unwatch_range": {"range": RANGE}})
        step = {"store": ORDER.store, "group_field": "order_id"}
        query = {"query": {"name": "q", "first": RANGE, "steps": [step]}, "interval_ms": 0}
        frames += await say(socket, {"id": "h", "watch_query": query}, 3)
        frames += await say(socket, {"id": "i", "unwatch_query": {"name": "q"}})
    events = {event for frame in frames for event in frame if event != "id"}

    assert [frame["id"] for frame in frames if "id" in frame] == list("abcdefghi")
    assert events == {
        "subscribed",
        "changed",
        "removed",
        "unsubscribed",
        "error",
        "range_watched",
        "range_changed",
        "range_unwatched",
        "query",
        "query_unwatched",
    }


async def test_the_frames_of_a_session_on_a_channel_are_as_described(keeping_edge: RunningEdge) -> None:
    headers = keeping_edge.headers()
    async with AsyncClient(base_url=f"http://{keeping_edge.address}", headers=headers, verify=False) as client:
        channel = await channel_of(client, order(ORDER.group), orders_of(CUSTOMER))
    position = {"epoch": "7", "offset": "0"}
    after = {
        "after": [{"store": ORDER.store, "key": KEY, "position": position}],
        "after_ranges": [{"range": RANGE, "through": position}],
    }
    async with keeping_edge.socket(f"{channel}/stream") as socket:
        frames = [check(json.loads(await socket.recv()), "ServerFrame")]
        frames += await say(socket, {"id": "a", "begin": after}, 3)

    events = {event for frame in frames for event in frame}
    assert events == {"id", "channel_attached", "subscribed", "removed", "range_watched"}


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
        ({"id": "a"}, "ClientFrame"),
        ({"subscribe": {}, "unsubscribe": {}}, "ClientFrame"),
        ({"subscribe": {"shop": "x"}}, "ClientFrame"),
        ({"subscribed": {"start": "START_SOMEHOW"}}, "ServerFrame"),
        ({"type": "order_updates_request", "interval_ms": "soon"}, "OrderUpdatesRequest"),
    ],
)
def test_a_malformed_frame_does_not_conform(frame: dict[str, Any], message: str) -> None:
    schema = {"allOf": [DOCUMENT["components"]["messages"][message]["payload"]], "components": DOCUMENT["components"]}

    assert not Draft7Validator(schema).is_valid(frame)


CONTRACT = FileDescriptorSet.FromString(commented_descriptor_set())


def test_a_schema_comes_with_all_it_refers_to_and_the_contracts_comments() -> None:
    schemas = schemas_of(CONTRACT, "statecast.push.v1.Subscribe")
    subscribe = schemas["statecast.push.v1.Subscribe"]

    assert set(schemas) == {
        "statecast.push.v1.Subscribe",
        "statecast.state.v1.StateKey",
        "statecast.state.v1.Position",
    }
    assert subscribe["description"] == "Watches one key of a store."
    assert subscribe["properties"]["key"]["allOf"] == [{"$ref": SCHEMAS + "statecast.state.v1.StateKey"}]
    assert subscribe["properties"]["interval_ms"]["type"] == "integer"
    assert "oneOf" not in subscribe
    assert subscribe["additionalProperties"] is False


def test_64_bit_numbers_may_be_strings_and_enums_are_names() -> None:
    schemas = schemas_of(CONTRACT, "statecast.push.v1.Subscribed", "statecast.state.v1.Position")

    assert schemas["statecast.state.v1.Position"]["properties"]["offset"]["type"] == ["string", "integer"]
    assert schemas["statecast.push.v1.Start"]["enum"] == ["START_UNSPECIFIED", "START_SNAPSHOT", "START_RECOVERED"]


def test_an_unknown_message_raises_key_error() -> None:
    with pytest.raises(KeyError, match="Nowhere"):
        schemas_of(CONTRACT, "statecast.push.v1.Nowhere")
