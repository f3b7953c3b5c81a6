"""Rows in frames: whole or changed fields, and no other fields than the client needs."""

import json
from itertools import pairwise
from typing import Any

import pytest
from google.protobuf import json_format
from google.protobuf.struct_pb2 import Value
from hypothesis import given
from hypothesis import strategies as st

from statecast.odds.v1.market_pb2 import Market, Outcome
from statecast.push.v2.push_pb2 import Row
from ws_edge.codec import bodies
from ws_edge.codec.bodies import View, binary_body, json_body
from ws_edge.errors import RowTooLargeError
from ws_edge.model.documents import changed_names, document, field_holding
from ws_edge.model.states import KeyState, Position, StoreKey
from ws_edge.watches.subscription import RowNews

KEY = StoreKey("odds", "m1", "winner", "k1")
ALL = View()


def state(**fields: Any) -> KeyState:
    return KeyState(KEY, Position(1, 5), Market(market_id="k1", name="winner", **fields), commit_ns=1_500_000_000)


def json_state(content: Any, key: StoreKey = KEY) -> KeyState:
    return KeyState(key, Position(1, 5), json_format.ParseDict(content, Value()))


def read(news: RowNews, view: View) -> dict[str, Any]:
    body = json_body(news, view)
    assert body is not None
    row: dict[str, Any] = json.loads(body)
    return row


def test_a_row_shows_every_field_without_presence() -> None:
    assert read(RowNews(state()), ALL) == {
        "key": "k1",
        "sort": "winner",
        "row": {"market_id": "k1", "match_id": "", "name": "winner", "outcomes": [], "suspended": False},
    }


def test_key_and_sort_value_are_left_out_where_the_row_holds_them() -> None:
    assert read(RowNews(state()), View(key_field="market_id", sort_field="name")).keys() == {"row"}
    assert read(RowNews(state()), View(key_field="match_id", sort_field="match_id")).keys() == {"key", "sort", "row"}


def test_a_row_that_the_client_holds_is_told_without_its_sort_value() -> None:
    assert read(RowNews(state(), frozenset({"name"})), ALL).keys() == {"key", "row"}


def test_a_row_keeps_its_sort_value_where_the_field_that_holds_those_of_others_has_another_text() -> None:
    changed = RowNews(state(match_id="other", suspended=True), frozenset({"suspended"}))
    whole, delta = View(sort_field="match_id"), View(sort_field="match_id", delta=True)

    assert read(changed, whole)["sort"] == read(changed, delta)["sort"] == "winner"
    assert "delta" in read(changed, delta)
    for view in (whole, delta):
        assert Row.FromString(binary_body(changed, view) or b"").sort == "winner"


def test_a_delta_has_the_changed_fields_and_null_for_those_that_are_gone() -> None:
    view = View(delta=True)
    row = read(RowNews(state(suspended=True), frozenset({"suspended", "updated_at"})), view)

    assert row == {"key": "k1", "delta": {"suspended": True, "updated_at": None}}


def test_a_row_that_may_be_new_to_the_client_is_whole() -> None:
    assert "row" in read(RowNews(state(suspended=True)), View(delta=True))


@pytest.mark.parametrize("content", [{"a": None, "b": "x" * 50}, [1, 2], "text"])
def test_a_document_that_no_patch_can_say_is_whole(content: Any) -> None:
    assert read(RowNews(json_state(content), frozenset({"a"})), View(delta=True))["row"] == content


def test_a_delta_that_is_not_shorter_is_the_whole_row() -> None:
    assert "row" in read(RowNews(json_state({"a": 1}), frozenset({"a"})), View(delta=True))


def test_what_no_field_of_the_view_shows_is_no_news() -> None:
    news = RowNews(state(), frozenset({"suspended"}))

    assert json_body(news, View(("name",))) is None
    assert binary_body(news, View(("name",))) is None


def test_left_out_versions_and_times_are_told() -> None:
    row = read(RowNews(state(), frozenset({"name"}), skipped=3), View(times=True))

    assert (row["skipped"], row["commit_time"]) == (3, "1970-01-01T00:00:01.500Z")


def test_a_row_that_has_left_is_its_key() -> None:
    gone = KeyState(KEY, Position(1, 6))

    assert read(RowNews(gone), ALL) == {"key": "k1", "left": True}
    assert Row.FromString(binary_body(RowNews(gone, skipped=1), ALL) or b"") == Row(key="k1", left=True, skipped=1)


def test_an_error_takes_the_place_of_a_row() -> None:
    error = RowTooLargeError("too large")

    assert json.loads(bodies.json_error(KEY, error)) == {
        "key": "k1",
        "error": {"code": "row_too_large", "message": "too large"},
    }
    assert Row.FromString(bodies.binary_error(KEY, error)).error.code == "row_too_large"


def test_a_row_is_encoded_once_for_all_who_are_sent_the_same() -> None:
    held = state()
    first = json_body(RowNews(held), View(("name",)))

    assert json_body(RowNews(held), View(("name",))) is first
    assert document(held) is document(held)
    for number in range(20):
        json_body(RowNews(held), View((f"field{number}",)))
    assert len(held.bodies) <= bodies.MAX_BODIES


def test_the_field_that_holds_a_text_is_found() -> None:
    assert field_holding(state(), "k1") == "market_id"
    assert field_holding(state(), "") == ""
    assert field_holding(json_state({"a": 1, "b": "k"}), "k") == "b"
    assert field_holding(json_state([1]), "1") == ""


OUTCOMES = st.lists(st.builds(Outcome, name=st.text(max_size=5), odds_thousandths=st.integers(1000, 9999)), max_size=3)
MARKETS = st.builds(
    Market,
    match_id=st.text(max_size=5),
    name=st.text(max_size=5),
    outcomes=OUTCOMES,
    suspended=st.booleans(),
)
SCALARS = st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=3)
DOCUMENTS = st.dictionaries(st.sampled_from("abcdef"), SCALARS | st.lists(SCALARS, max_size=2), max_size=6) | SCALARS
VIEWS = st.builds(View, st.sampled_from([(), ("a", "name"), ("b", "outcomes", "suspended")]), delta=st.just(True))


def merged(before: Any, row: dict[str, Any]) -> Any:
    """Returns the row of a client that held `before`."""
    if "row" in row:
        return row["row"]
    together = before | row["delta"]
    return {name: value for name, value in together.items() if row["delta"].get(name, "") is not None}


def shown(row: Any, view: View) -> Any:
    return {k: v for k, v in row.items() if k in view.fields} if view.fields and isinstance(row, dict) else row


def check_merge(versions: list[KeyState], view: View) -> None:
    """Asserts that the first version and one delta of all later changes give the last version."""
    names: frozenset[str] | None = frozenset()
    for before, after in pairwise(versions):
        changed = changed_names(before.row, after.row)
        names = None if names is None or changed is None else names | changed
    last, held = versions[-1], shown(document(versions[0]), view)
    body = json_body(RowNews(last, names), view)
    after = held if body is None else merged(held, json.loads(body))

    assert after == shown(document(last), view)


@given(st.lists(MARKETS, min_size=2, max_size=4), VIEWS)
def test_a_client_that_merges_deltas_has_the_message(rows: list[Market], view: View) -> None:
    check_merge([KeyState(KEY, Position(1, n), row) for n, row in enumerate(rows)], view)


@given(st.lists(DOCUMENTS, min_size=2, max_size=4), VIEWS)
def test_a_client_that_merges_deltas_has_the_document(rows: list[Any], view: View) -> None:
    check_merge([json_state(row) for row in rows], view)


@given(MARKETS, MARKETS, VIEWS)
def test_a_binary_client_that_takes_the_changed_fields_has_the_message(old: Market, new: Market, view: View) -> None:
    names = changed_names(old, new)
    body = binary_body(RowNews(KeyState(KEY, Position(1, 2), new), names), view)
    held, expected = part(old, view), part(new, view)
    if body is not None:
        row = Row.FromString(body)
        sent = Market.FromString(row.encoded)
        for name in row.changed:
            held.ClearField(name)  # type: ignore[arg-type]  # the stubs list the names
        if not row.changed:
            held.Clear()
        held.MergeFrom(sent)

    assert held == expected


def part(row: Market, view: View) -> Market:
    kept = Market()
    kept.CopyFrom(row)
    for name in Market.DESCRIPTOR.fields_by_name:
        if view.fields and name not in view.fields:
            kept.ClearField(name)  # type: ignore[arg-type]  # the stubs list the names
    return kept
