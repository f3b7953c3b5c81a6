"""The rules of a place: when rows count, which places live, and which state is saved."""

from typing import Any

import pytest

from statecast_client.push import Change, PushError
from statecast_client.push.places import Places

MARKETS = {"key_field": "market_id", "limit": 100}


def market(key: str, **fields: object) -> dict[str, Any]:
    return {"row": {"market_id": key, **fields}}


def begun(*rows: dict[str, Any], token: str = "A") -> Places:
    places = Places()
    places.take({"watching": MARKETS, "rows": rows, "token": token, "current": True})
    return places


def values(places: Places, *path: str) -> dict[str, Any]:
    return {key: row.value for key, row in places[path].rows.items()}


def test_a_small_watch_begins_in_one_frame() -> None:
    places = Places()
    changes = places.take({"watching": MARKETS, "rows": [market("m1", open=True)], "token": "A", "current": True})

    assert values(places) == {"m1": {"market_id": "m1", "open": True}}
    assert (places[()].token, places.current, places.resumed) == ("A", True, False)
    assert [(list(change.rows), change.token, change.current) for change in changes] == [
        (["m1"], "A", False),
        ([], "A", True),
    ]


def test_rows_count_at_their_token() -> None:
    places = begun(market("m1", price=1))

    assert places.take({"rows": [market("m1", price=2)]}) == []
    assert values(places)["m1"]["price"] == 1
    (change,) = places.take({"rows": [{"key": "m1", "delta": {"price": 3}}], "token": "B"})

    assert change.rows["m1"].value == {"market_id": "m1", "price": 3}
    assert places[()].token == "B"


def test_a_snapshot_that_is_cut_off_is_forgotten() -> None:
    places = begun(market("m1", price=1))
    places.take({"watching": MARKETS, "rows": [market("m2")]})
    places.cut()

    assert (list(values(places)), places.tokens()) == (["m1"], [((), "A")])
    places.take({"watching": MARKETS | {"resumed": True}, "rows": [market("m1", price=2)], "token": "B"})

    assert values(places) == {"m1": {"market_id": "m1", "price": 2}}
    assert places.resumed is True


def test_a_beginning_without_resumed_replaces_all_at_its_token() -> None:
    places = begun(market("m1"), market("m2"))
    places.take({"watching": MARKETS, "rows": [market("m3")]})

    assert list(values(places)) == ["m1", "m2"]
    (change,) = places.take({"rows": [market("m2")], "token": "B"})

    assert (list(change.rows), change.left) == (["m3", "m2"], {"m1": None})
    assert list(values(places)) == ["m3", "m2"]


def test_a_delta_changes_fields_and_removes_those_that_are_null() -> None:
    places = begun(market("m1", price=1, note="x", gone=None))
    places.take({"rows": [{"key": "m1", "delta": {"price": 2, "note": None}}], "token": "B"})

    assert values(places) == {"m1": {"market_id": "m1", "price": 2, "gone": None}}


def test_a_frame_that_fails_changes_nothing_and_a_mapping_of_rows_stays_as_it_is() -> None:
    places = begun(market("m1"), market("m2"))
    before = places[()].rows
    with pytest.raises(PushError):
        places.take({"rows": [{"key": "m1", "left": True}, {"key": "m9", "delta": {}}], "token": "B"})

    assert list(values(places)) == ["m1", "m2"]
    places.cut()
    places.take({"watching": MARKETS | {"resumed": True}, "rows": [{"key": "m1", "left": True}], "token": "C"})
    assert (list(before), list(values(places))) == (["m1", "m2"], ["m2"])


def test_a_delta_without_its_row_is_an_error() -> None:
    with pytest.raises(PushError, match="the row `m9`"):
        begun(market("m1")).take({"rows": [{"key": "m9", "delta": {"price": 2}}], "token": "B"})


def test_a_row_that_leaves_is_dropped_and_one_that_never_came_is_no_news() -> None:
    places = begun(market("m1"))
    (change,) = places.take({"rows": [{"key": "m1", "left": True}, {"key": "m9", "left": True}], "token": "B"})

    assert (change.left, values(places)) == ({"m1": None}, {})


def test_a_row_that_cannot_be_shown_is_dropped_with_the_reason() -> None:
    places = begun(market("m1"))
    error = {"code": "row_too_large", "message": "the row of m1 is too large"}
    (change,) = places.take({"rows": [{"key": "m1", "error": error}], "token": "B"})
    reason = change.left["m1"]

    assert reason is not None
    assert (reason.code, str(reason), values(places)) == ("row_too_large", "the row of m1 is too large", {})


def test_a_store_with_one_row_per_group_has_an_empty_key() -> None:
    places = Places()
    places.take({"watching": {"limit": 1}, "rows": [{"row": {"status": "PAID"}, "commit_time": "T"}], "token": "A"})

    assert places[()].rows[""].commit_time == "T"
    places.take({"rows": [{"left": True}], "token": "B"})

    assert values(places) == {}


def test_a_sort_value_comes_from_its_field_and_stays_where_a_row_brings_none() -> None:
    places = Places()
    watching = {"key_field": "id", "sort_field": "at"}
    rows = [{"row": {"id": "a", "at": "1"}}, {"sort": "2", "row": {"id": "b"}}]
    places.take({"watching": watching, "rows": rows, "token": "A"})
    places.take({"rows": [{"row": {"id": "b"}}, {"key": "a", "delta": {"at": "3"}}], "token": "B"})

    assert {key: row.sort for key, row in places[()].rows.items()} == {"a": "3", "b": "2"}


def test_a_bookmark_is_a_newer_token_of_a_quiet_place() -> None:
    places = begun(market("m1"))
    places.bookmark({"token": "B"})
    places.bookmark({"path": ["nowhere"], "token": "C"})

    assert places.tokens() == [((), "B")]


@pytest.mark.parametrize("frame", [{"rows": [market("m2")]}, {"watching": MARKETS}])
def test_a_newer_token_does_not_count_while_rows_wait_or_are_about_to_be_replaced(frame: dict[str, Any]) -> None:
    places = begun(market("m1"))
    places.take(frame)
    places.bookmark({"token": "B"})

    assert (list(values(places)), places.tokens()) == (["m1"], [((), "A")])


class TestQueries:
    """Two matches with a place below each."""

    @pytest.fixture
    def places(self) -> Places:
        places = Places()
        rows: list[dict[str, Any]] = [{"key": key, "row": {}} for key in ("m1", "m2")]
        places.take({"watching": {}, "rows": rows, "token": "L"})
        for key in ("m1", "m2"):
            places.take({"path": [key], "watching": MARKETS, "rows": [market(f"of {key}")], "token": f"of {key}"})
        return places

    def test_each_place_has_its_rows_and_its_token(self, places: Places) -> None:
        assert places.tokens() == [((), "L"), (("m1",), "of m1"), (("m2",), "of m2")]
        assert list(values(places, "m1")) == ["of m1"]

    def test_places_below_end_when_the_frame_with_left_comes(self, places: Places) -> None:
        (ended,) = places.take({"rows": [{"key": "m1", "left": True}]})
        places.take({"rows": [{"key": "m1", "row": {}}]})
        places.take({"path": ["m1"], "watching": MARKETS, "rows": [market("new")], "token": "N"})
        places.take({"token": "M"})

        assert ended == Change(("m1",), left={"of m1": None}, ended=True)
        assert places.tokens() == [((), "M"), (("m2",), "of m2"), (("m1",), "N")]

    def test_a_window_that_begins_anew_ends_places_without_a_row_at_its_token(self, places: Places) -> None:
        places.cut()
        assert places.take({"watching": {}, "rows": [{"key": "m1", "row": {}}]}) == []
        places.take({"path": ["m1"], "watching": MARKETS | {"resumed": True}, "token": "P"})
        change, ended = places.take({"token": "O"})

        assert (change.left, ended.path, ended.ended) == ({"m2": None}, ("m2",), True)
        assert places.tokens() == [((), "O"), (("m1",), "P")]
        assert list(values(places, "m1")) == ["of m1"]

    def test_ended_with_a_path_ends_that_place_alone(self, places: Places) -> None:
        places.take({"path": ["m1"], "ended": {}})

        assert list(places) == [(), ("m2",)]

    def test_what_is_saved_resumes(self, places: Places) -> None:
        places.take({"rows": [{"key": "m1", "row": {}, "commit_time": "2026-11-28T10:00:00Z"}], "token": "M"})
        again = Places(places.saved())

        assert again.tokens() == places.tokens()
        assert again[()].rows == places[()].rows
        assert again[("m1",)].rows == places[("m1",)].rows


def test_a_page_by_rest_resumes() -> None:
    places = Places({"rows": [{"key": "m1", "sort": "1", "row": {"price": 1}}], "token": "A"})

    assert (values(places), places.tokens()) == ({"m1": {"price": 1}}, [((), "A")])


@pytest.mark.parametrize("resume", [{}, {"rows": []}, {"token": "A", "rows": ["m1"]}, {"token": "A", "below": [{}]}])
def test_anything_else_is_refused(resume: dict[str, Any]) -> None:
    with pytest.raises(PushError, match="`resume` is neither"):
        Places(resume)


def test_two_changes_of_a_place_amount_to_one() -> None:
    places = begun(market("m1"), market("m2"), market("m3"))
    (first,) = places.take({"rows": [market("m1", price=1), {"key": "m2", "left": True}, market("m4")], "token": "B"})
    frames = [{**market("m1", price=2), "skipped": 2}, market("m2"), {"key": "m4", "left": True}]
    (second,) = places.take({"rows": frames, "token": "C"})
    both = first.followed_by(second)

    assert {key: (row.value.get("price"), row.skipped) for key, row in both.rows.items()} == {
        "m1": (2, 3),
        "m2": (None, 0),
    }
    assert (both.left, both.token) == ({"m4": None}, "C")
