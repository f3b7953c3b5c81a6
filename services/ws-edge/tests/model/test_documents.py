"""A row that JSON cannot represent is an error of that row alone."""

import json

import pytest
from google.protobuf.any_pb2 import Any

from ws_edge.errors import UnreadableRowError
from ws_edge.model.documents import document
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
