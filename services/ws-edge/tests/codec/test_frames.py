"""A frame is encoded once for all its receivers."""

import pytest

from statecast.orders.v1.order_pb2 import Order
from ws_edge.codec.frames import check_position, one_line, rfc3339, text_of, watch_request
from ws_edge.codec.order_codec import OrderCodec
from ws_edge.codec.stream_codec import StreamCodec
from ws_edge.errors import MalformedFrameError
from ws_edge.model.states import KeyState, Position, StoreKey

STATE = KeyState(StoreKey("orders-by-key", "o"), Position(1, 1), Order(order_id="o"))


def test_all_subscribers_share_one_frame_of_a_codec() -> None:
    orders, stream = OrderCodec(), StreamCodec({}, False)

    assert orders.frame_of(STATE, 0) is orders.frame_of(STATE, 0)
    assert stream.frame_of(STATE, 0) is not orders.frame_of(STATE, 0)


def test_a_frame_that_skipped_something_is_its_receivers_alone() -> None:
    orders = OrderCodec()

    assert '"skipped":"2"' in orders.frame_of(STATE, 2)["text"]
    assert "skipped" not in orders.frame_of(STATE, 0)["text"]


def test_times_are_written_as_proto3_json_has_them() -> None:
    assert rfc3339(1724848496123456000) == "2024-08-28T12:34:56.123456Z"
    assert rfc3339(1724848496000000000) == "2024-08-28T12:34:56Z"


def test_wrong_values_are_refused_and_right_ones_are_returned() -> None:
    assert check_position(0, -1) == Position(0, -1)
    assert watch_request(StoreKey("s", "g"), None, 0, "1").interval_ms == 0
    assert text_of({"text": "hello", "bytes": None}) == "hello"
    with pytest.raises(MalformedFrameError):
        check_position(1, -2)
    with pytest.raises(MalformedFrameError):
        watch_request(StoreKey("s", "g"), None, -5, "1")


def test_a_parsers_error_becomes_one_short_line() -> None:
    assert one_line(ValueError("a\n  b")) == "a b"
    assert len(one_line(ValueError("x" * 1000))) == 300
