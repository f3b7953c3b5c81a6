"""Rows of any store, as the demo shows them."""

from local_stack.demo_lines import row_line, text_of
from statecast_client.push import Row

COMMITTED = "1970-01-01T00:00:01Z"


def test_a_row_is_named_by_its_key_and_shown_with_its_fields() -> None:
    row = Row("member", "1", {"client": "ada", "positions": 2, "shares": "70"}, commit_time=COMMITTED)
    line = row_line("holders", "group", row, "operator")

    assert line is not None
    assert line.name == "holders group member"
    assert line.cells == ("holders", "group", "member", "client ada  positions 2  shares 70")
    assert (line.seen_by, line.committed_s) == ("operator", 1.0)


def test_a_row_without_a_time_makes_no_line() -> None:
    assert row_line("holders", "group", Row("member", "1", {"client": "ada"}), "operator") is None


def test_what_stands_below_a_field_is_shown_by_its_values() -> None:
    outcomes = [{"name": "home", "price": 1250}, {"name": "away", "price": 3100}]

    assert text_of({"name": "goals", "outcomes": outcomes}) == "name goals  outcomes home 1250, away 3100"
    assert text_of([1, {"b": "c"}]) == "1, c"
