"""A frame is encoded once for all who get it."""

import pytest

from statecast.orders.v1.order_pb2 import Order
from ws_edge.dialects.frames import check_interval, check_position, frame_of, one_line, rfc3339, text_of
from ws_edge.dialects.order_frames import OrderFrames
from ws_edge.dialects.stream_frames import StreamFrames
from ws_edge.errors import MalformedFrameError
from ws_edge.states import Position, StoreKey, Version

VERSION = Version(StoreKey("orders-by-key", "o"), Position(1, 1), Order(order_id="o"))


def test_all_subscribers_share_one_frame_of_a_dialect() -> None:
    orders, stream = OrderFrames(), StreamFrames({}, False)

    assert frame_of(orders, VERSION, 0) is frame_of(orders, VERSION, 0)
    assert frame_of(stream, VERSION, 0) is not frame_of(orders, VERSION, 0)


def test_a_frame_that_skipped_something_is_its_receivers_alone() -> None:
    orders = OrderFrames()

    assert '"skipped":"2"' in frame_of(orders, VERSION, 2)["text"]
    assert "skipped" not in frame_of(orders, VERSION, 0)["text"]


def test_times_are_written_as_proto3_json_has_them() -> None:
    assert rfc3339(1724848496123456000) == "2024-08-28T12:34:56.123456Z"
    assert rfc3339(1724848496000000000) == "2024-08-28T12:34:56Z"


def test_wrong_values_are_refused_and_right_ones_returned() -> None:
    assert check_position(0, -1) == Position(0, -1)
    assert check_interval(0) == 0
    assert text_of({"text": "hello", "bytes": None}) == "hello"
    with pytest.raises(MalformedFrameError):
        check_position(1, -2)
    with pytest.raises(MalformedFrameError):
        check_interval(-5)


def test_a_parsers_error_becomes_one_short_line() -> None:
    assert one_line(ValueError("a\n  b")) == "a b"
    assert len(one_line(ValueError("x" * 1000))) == 300
