"""Rows of any store, as the demo shows them."""

import pytest
from google.protobuf import json_format
from google.protobuf.any_pb2 import Any as PackedRow
from google.protobuf.struct_pb2 import Value

from local_stack.demo_lines import RowLines, text_of
from statecast.descriptors import MessageTypes
from statecast.portfolio.v1.share_holder_pb2 import ShareHolder
from statecast.push.v1.range_pb2 import RangeChanged
from statecast.state.v1.state_pb2 import StateKey


@pytest.fixture(scope="module")
def lines() -> RowLines:
    return RowLines(MessageTypes.read())


def change(row: PackedRow | None, seconds: int = 1) -> RangeChanged:
    changed = RangeChanged(key=StateKey(group="group", sort="1", member="member"), row=row)
    if seconds:
        changed.commit_time.FromSeconds(seconds)
    return changed


def packed(message: ShareHolder | Value) -> PackedRow:
    row = PackedRow()
    row.Pack(message)
    return row


def test_a_row_is_named_by_its_key_and_shown_with_its_fields(lines: RowLines) -> None:
    line = lines.line("holders", change(packed(ShareHolder(client="ada", positions=2, shares=70))), "operator")

    assert line is not None
    assert line.name == "holders group member"
    assert line.cells == ("holders", "group", "member", "client ada  positions 2  shares 70")
    assert (line.seen_by, line.committed_s) == ("operator", 1.0)


def test_a_row_of_json_is_shown_alike(lines: RowLines) -> None:
    line = lines.line("plain", change(packed(json_format.ParseDict({"a": [1, {"b": "c"}]}, Value()))), "operator")

    assert line is not None
    assert line.cells[3] == "a 1.0, c"


def test_a_message_that_nobody_knows_is_shown_by_its_name(lines: RowLines) -> None:
    line = lines.line(
        "own", change(PackedRow(type_url="type.googleapis.com/shop.Ticket", value=b"\x08\x01")), "operator"
    )

    assert line is not None
    assert line.cells[3] == "shop.Ticket"


def test_what_has_gone_and_what_has_no_time_makes_no_line(lines: RowLines) -> None:
    assert lines.line("holders", change(None), "operator") is None
    assert lines.line("holders", change(packed(ShareHolder(client="ada")), seconds=0), "operator") is None


def test_what_stands_below_a_field_is_shown_by_its_values() -> None:
    outcomes = [{"name": "home", "price": 1250}, {"name": "away", "price": 3100}]

    assert text_of({"name": "goals", "outcomes": outcomes}) == "name goals  outcomes home 1250, away 3100"
