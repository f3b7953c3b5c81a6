"""Fields that are carried over, and those that are not."""

import pytest

from kong_envoy.errors import UnsupportedError
from kong_envoy.fields import check, entries, flag, nested, only, optional, required, text, texts, whole

TABLE = {"name": required(text), "count": optional(whole(1, 9), 3), "mode": optional(only("a", ["b", "c"]), "a")}


def test_defaults_fill_what_is_left_out() -> None:
    assert check("here", {"name": "x"}, TABLE) == {"name": "x", "count": 3, "mode": "a"}


@pytest.mark.parametrize(
    ("given", "where"),
    [
        ({}, "here.name"),
        ({"name": "x", "other": 1}, "here.other"),
        ({"name": ""}, "here.name"),
        ({"name": 1}, "here.name"),
        ({"name": "x", "count": 0}, "here.count"),
        ({"name": "x", "count": 10}, "here.count"),
        ({"name": "x", "count": True}, "here.count"),
        ({"name": "x", "mode": "b"}, "here.mode"),
        ("no mapping", "here"),
    ],
)
def test_what_is_not_carried_over_is_named(given: object, where: str) -> None:
    with pytest.raises(UnsupportedError) as refusal:
        check("here", given, TABLE)

    assert refusal.value.where == where
    assert str(refusal.value).startswith(f"{where}: ")


def test_a_list_of_allowed_values_stands_for_a_set() -> None:
    assert only(["b", "c"])(["c", "b"]) is None
    assert only(["b", "c"])(["b"]) is not None


def test_false_is_not_zero() -> None:
    assert only(False)(0) is not None
    assert only(0)(False) is not None


def test_rules_tell_their_kinds_apart() -> None:
    assert flag(True) is None
    assert flag("true") is not None
    assert texts(["a"]) is None
    assert texts("a") is not None
    assert texts([1]) is not None
    assert nested({}) is None
    assert nested("a") is not None


def test_entries_say_where_they_stand() -> None:
    assert entries("here", ["a", "b"]) == [("here[0]", "a"), ("here[1]", "b")]


def test_entries_must_be_a_list() -> None:
    with pytest.raises(UnsupportedError, match="here: must be a list"):
        entries("here", {"a": 1})
