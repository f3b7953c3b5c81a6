"""A row that JSON cannot represent is an error of that row alone."""

import json

import pytest
from google.protobuf import json_format
from google.protobuf.any_pb2 import Any
from google.protobuf.message import Message
from google.protobuf.struct_pb2 import Value
from google.protobuf.timestamp_pb2 import Timestamp

from statecast.orders.v1.order_pb2 import Order, OrderItem, OrderStatus
from statecast.push.v2.push_pb2 import Hello, ServerFrame
from statecast.query.v1.query_pb2 import Bounds
from statecast.query.v1.query_service_pb2 import ScanStatesRequest
from statecast.sales.v1.hourly_sales_pb2 import HourlySales
from statecast.shard.v1.backup_pb2 import BackedUpFile, BackupManifest
from ws_edge.errors import UnreadableRowError
from ws_edge.model.documents import document, message_document
from ws_edge.model.states import KeyState, Position, StoreKey
from ws_edge.rest.row_pages import RowPage, page_body

CONTENTS = [("type.googleapis.com/example.Unknown", b""), ("type.googleapis.com/google.protobuf.Value", b"\xff")]


def row_of(url: str, content: bytes) -> KeyState:
    return KeyState(StoreKey("events", "g"), Position(1, 1), Any(type_url=url, value=content))


@pytest.mark.parametrize(("url", "content"), CONTENTS)
def test_a_message_within_a_row_that_is_unknown_or_broken_is_named(url: str, content: bytes) -> None:
    with pytest.raises(UnreadableRowError, match="events/g"):
        document(row_of(url, content))


async def test_a_page_with_such_a_row_has_the_others() -> None:
    rows = [row_of(*CONTENTS[0]), row_of("type.googleapis.com/google.protobuf.Value", b"\x20\x01")]
    refused, shown = json.loads(await page_body(RowPage(rows, (), "", 0)))["rows"]

    assert refused["error"]["code"] == "unreadable_row"
    assert shown["row"]["value"] is True


MESSAGES = (
    Order(),
    Order(order_id="é", items=[OrderItem(quantity=-1)], placed_at=Timestamp(seconds=1)),
    Order(status=OrderStatus.ORDER_STATUS_PAID, total_cents=2**53 + 1),
    Order.FromString(bytes.fromhex("1863")),  # the status of a newer contract
    ServerFrame(id=2**32 - 1, current=True, hello=Hello(protocol=2)),
    ScanStatesRequest(reverse=True, bounds=Bounds(max_lag_ms=0)),
    HourlySales(average_cents=0.1),
    BackupManifest(files={"a": BackedUpFile()}),
    Value(number_value=1),
)


@pytest.mark.parametrize("has_defaults", [True, False])
@pytest.mark.parametrize("message", MESSAGES)
def test_messages_are_written_as_by_the_library(message: Message, has_defaults: bool) -> None:
    written = json_format.MessageToDict(
        message, preserving_proto_field_name=True, always_print_fields_with_no_presence=has_defaults
    )

    assert message_document(message, has_defaults=has_defaults) == written
