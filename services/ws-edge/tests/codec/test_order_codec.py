"""The frames of `/update/orders` are the contract's messages, and bad frames are answered with the reason."""

import json
from typing import Any

import pytest
from google.protobuf import json_format
from hypothesis import given
from hypothesis import strategies as st

from statecast.orders.v1.order_pb2 import Order, OrderStatus
from statecast.push.v1.order_updates_pb2 import OrderUpdatesReply
from ws_edge.codec.frames import CancelRequest, Request, WatchRequest
from ws_edge.codec.order_codec import OrderCodec, order_reply, path_request
from ws_edge.errors import ForbiddenError, MalformedFrameError
from ws_edge.model.states import KeyState, Position, StoreKey

KEY = StoreKey("orders-by-key", "12345")
CODEC = OrderCodec()
SHIPPED = Order(
    order_id="12345",
    customer_id="customer-0001",
    status=OrderStatus.ORDER_STATUS_SHIPPED,
    estimated_delivery="2024-08-28",
    tracking_number="1Z999AA10123456784",
)


def parse(document: Any) -> Request:
    return CODEC.parse({"type": "websocket.receive", "text": json.dumps(document)})


@pytest.mark.parametrize(
    "document",
    [
        {"type": "order_status_updates_request", "data": {"order_id": "12345"}},
        {"type": "order_updates_request", "order_id": "12345"},
        {"type": "order_updates_request", "order_id": "12345", "data": {"order_id": "12345"}},
    ],
)
def test_both_forms_of_a_request_are_read(document: Any) -> None:
    assert parse(document) == WatchRequest(KEY, None, None, "12345")


def test_a_request_may_bring_a_position_and_an_interval() -> None:
    position = {"epoch": "4611686018427387904", "offset": 17}
    request = parse({"type": "order_updates_request", "order_id": "12345", "position": position, "interval_ms": 250})

    assert request == WatchRequest(KEY, Position(4611686018427387904, 17), 250, "12345")


@pytest.mark.parametrize("more", [{}, {"interval_ms": 250}])
def test_a_request_may_ask_to_be_told_again(more: dict[str, Any]) -> None:
    request = parse({"type": "order_updates_request", "order_id": "12345", "repeat": True, **more})

    assert request == WatchRequest(KEY, None, more.get("interval_ms"), "12345", repeat=True)


@pytest.mark.parametrize(
    ("query", "repeat"), [(b"", False), (b"repeat=false", False), (b"repeat=true", True), (b"repeat=true&a=b", True)]
)
def test_an_address_may_ask_to_be_told_again(query: bytes, repeat: bool) -> None:
    assert path_request("12345", query) == WatchRequest(KEY, None, None, "12345", repeat)


@pytest.mark.parametrize("query", [b"repeat=", b"repeat=yes", b"repeat=true&repeat=true", b"repeat=true&interval_ms=0"])
def test_an_address_that_asks_for_it_wrongly_is_refused(query: bytes) -> None:
    with pytest.raises(MalformedFrameError, match="repeat"):
        path_request("12345", query)


def test_a_cancellation_names_the_order() -> None:
    assert parse({"type": "order_updates_cancel", "data": {"order_id": "12345"}}) == CancelRequest(KEY, "12345")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", "not JSON"),
        ("", "not JSON"),
        ("[" * 10_000, "not JSON"),
        ("[]", "not a JSON object"),
        ("null", "not a JSON object"),
        ('{"type": "order_updates_request"}', "order is missing"),
        ('{"type": "subscribe", "order_id": "1"}', "order_status_updates_request, order_updates_request"),
        ('{"order_id": "1"}', "must be one of"),
        ('{"type": "order_updates_request", "order_id": "1", "colour": 1}', "colour"),
        ('{"type": "order_updates_request", "order_id": 1}', "order_id"),
        ('{"type": "order_updates_request", "order_id": "1", "repeat": true, "interval_ms": 0}', "repeat.*interval_ms"),
        ('{"type": "order_updates_request", "order_id": "1", "repeat": "often"}', "repeat"),
        ('{"type": "order_updates_request", "order_id": "1", "data": {"order_id": "2"}}', "two different orders"),
        ('{"type": "order_updates_request", "order_id": "a\\u0000b"}', "NUL"),
        ('{"type": "order_updates_request", "order_id": "\\ud800"}', "half of a character"),
        ('{"type": "order_updates_request", "order_id": "1", "\\udfff": 1}', "half of a character"),
        ('{"type": "order_updates_request", "order_id": "1", "interval_ms": -1}', "interval_ms is -1"),
        ('{"type": "order_updates_request", "order_id": "1", "interval_ms": 1e99}', "interval_ms"),
        ('{"type": "order_updates_request", "order_id": "1", "position": {"epoch": -1}}', "no such position"),
    ],
)
def test_a_request_that_cannot_be_read_is_refused_with_the_reason(text: str, reason: str) -> None:
    with pytest.raises(MalformedFrameError, match=reason) as refusal:
        CODEC.parse({"type": "websocket.receive", "text": text})
    assert "\n" not in str(refusal.value)


def test_a_binary_frame_is_refused() -> None:
    with pytest.raises(MalformedFrameError, match="binary"):
        CODEC.parse({"type": "websocket.receive", "bytes": b"{}"})


@given(st.text() | st.recursive(st.none() | st.text() | st.integers() | st.floats(), st.lists).map(json.dumps))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        request = CODEC.parse({"type": "websocket.receive", "text": text})
    except MalformedFrameError:
        return

    assert not isinstance(request, WatchRequest | CancelRequest) or request.key.group


@given(
    st.dictionaries(
        st.sampled_from(["type", "data", "order_id", "position", "interval_ms", "x"]),
        st.none()
        | st.booleans()
        | st.text()
        | st.integers()
        | st.floats()
        | st.sampled_from(["order_updates_request", "order_updates_cancel"])
        | st.dictionaries(st.sampled_from(["order_id", "epoch", "offset"]), st.text() | st.integers() | st.floats()),
    )
)
def test_any_object_is_read_or_refused(document: Any) -> None:
    try:
        request = parse(document)
    except MalformedFrameError:
        return

    assert not isinstance(request, WatchRequest | CancelRequest) or request.key.group


@pytest.mark.parametrize(
    "state",
    [
        KeyState(KEY, Position(7, 42), SHIPPED, "customer-0001", commit_ns=1724848496123456000),
        KeyState(KEY, Position(7, 42), Order(order_id="12345", status=OrderStatus.ORDER_STATUS_PLACED)),
        KeyState(KEY, Position(7, 42), deleted=True, commit_ns=1724848496000000000),
        KeyState(KEY, Position(7, 42)),
    ],
)
@pytest.mark.parametrize("skipped", [0, 3])
def test_a_frame_is_the_contracts_reply(state: KeyState, skipped: int) -> None:
    document = json.loads(CODEC.changed(state, skipped)["text"])
    reply = json_format.ParseDict(document, OrderUpdatesReply())

    assert reply.skipped == skipped
    assert (reply.position.epoch, reply.position.offset) == (7, 42)
    again = json_format.MessageToDict(reply, preserving_proto_field_name=True)
    assert {**again, "data": document["data"]} == document
    assert list(document["data"]) == ["order_id", "status", "estimated_delivery", "tracking_number"]


def test_the_frame_of_an_order_has_the_fields_that_customers_expect() -> None:
    reply = order_reply(KeyState(KEY, Position(7, 42), SHIPPED, commit_ns=1724848496123456000))

    assert reply == {
        "type": "order_status_update",
        "data": {
            "order_id": "12345",
            "status": "Shipped",
            "estimated_delivery": "2024-08-28",
            "tracking_number": "1Z999AA10123456784",
        },
        "position": {"epoch": "7", "offset": "42"},
        "commit_time": "2024-08-28T12:34:56.123456Z",
    }


def test_an_order_without_a_row_is_unknown_or_deleted() -> None:
    assert order_reply(KeyState(KEY, Position(7, 1)))["data"]["status"] == "Unknown"
    assert order_reply(KeyState(KEY, Position(7, 1), deleted=True))["data"]["status"] == "Deleted"


def test_failures_and_cancellations_are_the_contracts_replies() -> None:
    failed = json.loads(CODEC.failed(ForbiddenError("not yours"), "12345")["text"])
    cancelled = json.loads(CODEC.cancelled(KEY, "12345")["text"])

    assert failed == {
        "type": "error",
        "error": {"code": "forbidden", "message": "not yours", "order_id": "12345"},
    }
    assert cancelled["data"]["order_id"] == "12345"
    for document in (failed, cancelled):
        json_format.ParseDict(document, OrderUpdatesReply())
