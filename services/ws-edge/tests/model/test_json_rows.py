"""Rows of JSON are sent as they are, with integers that no double holds as texts."""

import json
from typing import Any

import pytest
from google.protobuf.message import DecodeError
from hypothesis import given
from hypothesis import strategies as st

from statecast.json_documents import MAX_EXACT
from ws_edge.model import documents, json_rows
from ws_edge.model.json_rows import MAX_DEPTH
from ws_edge.model.states import KeyState, Position, StoreKey

SCALARS = st.none() | st.booleans() | st.text() | st.integers(-MAX_EXACT, MAX_EXACT) | st.floats(allow_nan=False)
DOCUMENTS = st.recursive(SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=20)


def shown(document: Any) -> Any:
    row = json_rows.decode(json.dumps(document).encode())
    return documents.document(KeyState(StoreKey("scores", "g"), Position(1, 1), row))


@given(DOCUMENTS.filter(lambda document: "Infinity" not in json.dumps(document)))
def test_a_document_is_shown_as_it_is(document: Any) -> None:
    assert shown(document) == document


def test_integers_are_written_as_integers() -> None:
    document = {"id": 42, "big": [2**53, -(2**53)], "price": 1.5, "far": 1e300}

    assert json.dumps(shown(document), sort_keys=True) == json.dumps(document, sort_keys=True)
    assert json.dumps(shown([1.0, -0.0])) == "[1, 0]"


def test_an_integer_that_no_double_holds_becomes_a_text() -> None:
    assert shown([2**53, 2**53 + 1, -(2**63)]) == [2**53, "9007199254740993", "-9223372036854775808"]


@pytest.mark.parametrize("digits", ["9" * 5000, "-" + "9" * 5000])
def test_an_integer_of_more_digits_than_python_reads_becomes_a_text(digits: str) -> None:
    row = json_rows.decode(f'{{"n": {digits}}}'.encode())

    assert row.struct_value.fields["n"].string_value == digits


@pytest.mark.parametrize(
    "payload", [b"", b"{", b"NaN", b"[1e999]", b'"\\ud800"', b"\xff", b"[" * (MAX_DEPTH + 1) + b"]" * (MAX_DEPTH + 1)]
)
def test_what_cannot_be_sent_is_refused(payload: bytes) -> None:
    with pytest.raises(DecodeError):
        json_rows.decode(payload)


def test_the_deepest_document_can_be_read_back() -> None:
    document: Any = 1
    for _ in range(MAX_DEPTH):
        document = {"a": document}
    row = json_rows.decode(json.dumps(document).encode())

    assert type(row).FromString(row.SerializeToString()) == row


@pytest.mark.parametrize(
    ("document", "owner"),
    [
        ({"who": "a"}, "a"),
        ({"who": 17}, "17"),
        ({"who": 2**60 + 1}, str(2**60 + 1)),
        ({"who": 1.5}, ""),
        ({"who": True}, ""),
        ({}, ""),
        (1, ""),
    ],
)
def test_the_owner_is_a_text_or_a_whole_number_of_the_outermost_object(document: Any, owner: str) -> None:
    assert json_rows.text_of(json_rows.decode(json.dumps(document).encode()), "who") == owner
