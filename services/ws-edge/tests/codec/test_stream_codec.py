"""The frames of `/v1/stream` are the contract's ClientFrame and ServerFrame, in JSON and in binary."""

import json
from typing import Any

import pytest
from google.protobuf import json_format
from hypothesis import given
from hypothesis import strategies as st

from statecast.orders.v1.order_pb2 import Order
from statecast.push.v1.push_pb2 import ClientFrame, ServerFrame
from statecast.push.v1.subscription_pb2 import Start
from testkit.ws_edge.edge import Recorder
from testkit.ws_edge.fake_query_service import SHIPPED_STORES
from ws_edge.codec.frames import CancelRequest, WatchRequest
from ws_edge.codec.stream_codec import MAX_FORMS, StreamCodec
from ws_edge.errors import ForbiddenError, MalformedFrameError, RequestError, UnknownStoreError
from ws_edge.hub.member_changes import MemberChange
from ws_edge.hub.watch import KeyWatch, Subscription
from ws_edge.model.authorization import Consumer
from ws_edge.model.states import KeyState, Position, RangeKey, StoreKey

STORES = SHIPPED_STORES
JSON, BINARY = StreamCodec(STORES, False), StreamCodec(STORES, True)
KEY = StoreKey("orders-by-key", "12345")
MEMBER = StoreKey("orders-by-customer", "customer-0001", "2024-08-28T12:34:56.123456Z", "12345")


def text(document: Any) -> dict[str, Any]:
    return {"type": "websocket.receive", "text": json.dumps(document)}


def server_frame(event: dict[str, Any]) -> ServerFrame:
    if "bytes" in event:
        return ServerFrame.FromString(event["bytes"])
    return json_format.Parse(event["text"], ServerFrame())


def test_a_subscription_is_read_from_json_and_from_binary() -> None:
    document = {
        "id": "a",
        "subscribe": {
            "store": "orders-by-key",
            "key": {"group": "12345"},
            "after": {"epoch": "7", "offset": "42"},
            "interval_ms": 250,
            "repeat": True,
        },
    }
    binary = json_format.ParseDict(document, ClientFrame()).SerializeToString()
    expected = WatchRequest(KEY, Position(7, 42), 250, "a", repeat=True)

    assert JSON.parse(text(document)) == expected
    assert BINARY.parse({"type": "websocket.receive", "bytes": binary}) == expected


def test_a_member_is_named_by_group_sort_and_member() -> None:
    key = {"group": MEMBER.group, "sort": MEMBER.sort, "member": MEMBER.member}
    document = {"unsubscribe": {"store": "orders-by-customer", "key": key}}

    assert JSON.parse(text(document)) == CancelRequest(MEMBER, "")


@pytest.mark.parametrize(
    ("document", "error", "reason"),
    [
        ({}, MalformedFrameError, "asks for nothing"),
        ({"id": "x" * 65}, MalformedFrameError, "64"),
        ({"subscribe": {"store": "orders-by-key"}}, MalformedFrameError, "no group"),
        ({"subscribe": {"store": "orders", "key": {"group": "1"}}}, UnknownStoreError, "orders-by"),
        ({"subscribe": {"store": "orders-by-customer", "key": {"group": "1"}}}, MalformedFrameError, "needs group"),
        (
            {"subscribe": {"store": KEY.store, "key": {"group": "1"}, "interval_ms": 0, "repeat": True}},
            MalformedFrameError,
            "repeat.*interval_ms",
        ),
        ({"watch_range": {"range": {"store": MEMBER.store}, "repeat": True}}, MalformedFrameError, "repeat"),
        ({"publish": {}}, MalformedFrameError, "publish"),
        ({"id": "\ud800"}, MalformedFrameError, "half of a character"),
        ({"\ud800": {}}, MalformedFrameError, "half of a character"),
        ({"subscribe": {"interval_ms": "\ud800"}}, MalformedFrameError, "half of a character"),
    ],
)
def test_a_request_that_cannot_be_read_is_refused_with_the_reason(
    document: Any, error: type[RequestError], reason: str
) -> None:
    with pytest.raises(error, match=reason):
        JSON.parse(text(document))


def test_an_error_carries_the_id_of_its_frame() -> None:
    with pytest.raises(UnknownStoreError) as refusal:
        JSON.parse(text({"id": "a", "subscribe": {"store": "orders", "key": {"group": "1"}}}))
    assert refusal.value.reference == "a"


def test_frames_of_the_other_kind_are_refused() -> None:
    with pytest.raises(MalformedFrameError, match="binary"):
        JSON.parse({"type": "websocket.receive", "bytes": b""})
    with pytest.raises(MalformedFrameError, match="text"):
        BINARY.parse(text({}))


@given(st.binary(max_size=100))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    try:
        request = BINARY.parse({"type": "websocket.receive", "bytes": data})
    except RequestError:
        return

    assert not isinstance(request, WatchRequest | CancelRequest) or request.key.group


@pytest.mark.parametrize("codec", [JSON, BINARY])
def test_a_row_makes_a_changed_frame_and_no_row_a_removed_frame(codec: StreamCodec) -> None:
    order = Order(order_id="12345", customer_id="customer-0001", total_cents=1999)
    changed = server_frame(codec.changed(KeyState(MEMBER, Position(7, 42), order, commit_ns=10**18), 2)).changed
    removed = server_frame(codec.changed(KeyState(KEY, Position(7, 43), deleted=True), 0)).removed
    row = Order()

    assert changed.row.Unpack(row)
    assert row == order
    assert (changed.store, changed.key.member, changed.skipped) == ("orders-by-customer", "12345", 2)
    assert (changed.position.epoch, changed.position.offset) == (7, 42)
    assert changed.commit_time.seconds == 10**9
    assert (removed.key.group, removed.position.offset, removed.HasField("commit_time")) == ("12345", 43, False)


@pytest.mark.parametrize("codec", [JSON, BINARY])
def test_answers_carry_the_id_of_their_request(codec: StreamCodec) -> None:
    subscription = Subscription(KeyWatch(KEY, 0), Recorder(), Consumer("c", "c", False), None, 0.25, "a")
    started = codec.started(subscription, True)
    assert started is not None
    subscribed = server_frame(started)
    unsubscribed = server_frame(codec.cancelled(KEY, "b"))
    failed = server_frame(codec.failed(ForbiddenError("not yours"), "c"))

    assert (subscribed.id, subscribed.subscribed.start) == ("a", Start.START_RECOVERED)
    assert subscribed.subscribed.interval_ms == 250
    assert (unsubscribed.id, unsubscribed.unsubscribed.key.group) == ("b", "12345")
    assert (failed.id, failed.error.code, failed.error.message) == ("c", "forbidden", "not yours")


def test_a_row_of_a_range_shares_its_newest_frames_and_keeps_few() -> None:
    key, row = RangeKey(MEMBER.store, MEMBER.group, "", "", 10, False), KeyState(MEMBER, Position(7, 1), Order())
    for offset in range(100):
        first, again = (JSON.member_changed(key, MemberChange(None, row), Position(7, offset)) for _ in "12")

        assert first is again
    assert len(row.frames) <= MAX_FORMS
