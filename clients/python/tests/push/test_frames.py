"""The shared frames of all clients: the client reads those of an edge, and writes those of a client."""

import json
from pathlib import Path
from typing import Any

import pytest

from statecast.push.v2 import push_pb2
from statecast_client.push.places import Places
from statecast_client.push.requests import Requests
from statecast_client.push.watches import Watch

PAIRS = json.loads((Path(__file__).parents[3] / "frames.json").read_text())
EDGE, CLIENT = ({pair["shows"]: pair["json"] for pair in PAIRS[side]} for side in ("edge", "client"))
MARKET = "market-000123-1"


@pytest.fixture
def places() -> Places:
    places = Places()
    places.take(EDGE["a watch begins with all rows"])
    return places


def test_a_watch_begins_and_its_row_has_the_key_and_sort_value_of_its_fields(places: Places) -> None:
    (row,) = places[()].rows.values()

    assert (row.key, row.sort, row.value["suspended"]) == (MARKET, "match winner", False)
    assert places.current


@pytest.mark.parametrize("shows", ["a row changes", "a row changes, as a delta", "a watch resumes"])
def test_a_row_is_whole_after_each_way_of_a_change(places: Places, shows: str) -> None:
    before = places[()].rows[MARKET].value
    places.take(EDGE[shows])

    assert places[()].rows[MARKET].value == before


def test_a_field_that_is_gone_is_removed(places: Places) -> None:
    before = places[()].rows[MARKET].value
    places.take(EDGE["a field is gone"])

    assert before.keys() - places[()].rows[MARKET].value.keys() == {"updated_at"}


def test_a_row_has_its_time_and_the_number_of_versions_that_were_left_out(places: Places) -> None:
    frame = EDGE["a row with its time, after versions that were left out"]
    places.take(frame)
    row = places[()].rows[MARKET]

    assert (row.skipped, row.commit_time) == (frame["rows"][0]["skipped"], frame["rows"][0]["commit_time"])


@pytest.mark.parametrize("shows", ["a row leaves", "a row cannot be shown"])
def test_a_row_is_dropped(places: Places, shows: str) -> None:
    (change,) = places.take(EDGE[shows])

    assert not places[()].rows
    assert getattr(change.left[MARKET], "code", None) == (None if shows == "a row leaves" else "row_too_large")


def test_rows_without_a_token_change_nothing_yet(places: Places) -> None:
    assert places.take(EDGE["rows that count later"]) == []


def test_a_place_below_begins_and_ends(places: Places) -> None:
    places.take(EDGE["a place below"])
    assert list(places) == [(), ("match-000123",)]

    places.take(EDGE["a place below ends"])
    assert list(places) == [()]


@pytest.mark.parametrize(("shows", "number"), [("watch a range", 1), ("watch a query", 2), ("watch a channel", 3)])
def test_a_watch_is_asked_for_as_all_clients_do(shows: str, number: int) -> None:
    (wanted,) = CLIENT[shows]["watch"]
    own = {name: value for name, value in wanted.items() if name not in ("id", "token", "below", "delta")}
    resume = {name: wanted[name] for name in ("token", "below") if name in wanted}
    if wanted.get("delta"):
        resume["rows"] = []
    requests = Requests()
    requests._number = number - 1
    requests.watch(Watch(push_pb2.Watch(**own), resume or None, requests.unwatch, lambda _: None))

    assert _sent(requests) == CLIENT[shows]


def test_watches_are_ended_as_all_clients_do() -> None:
    requests = Requests()
    watches = [Watch(push_pb2.Watch(store="s"), None, requests.unwatch, lambda _: None) for _ in range(2)]
    for watch in watches:
        requests.watch(watch)
    _sent(requests)
    for watch in watches:
        requests.unwatch(watch)

    assert _sent(requests) == CLIENT["end watches"]


def _sent(requests: Requests) -> dict[str, Any]:
    (frame,) = requests.frames(65_536)
    sent: dict[str, Any] = json.loads(frame)
    return sent


def test_no_frame_is_larger_than_the_edge_takes_however_many_watches_end() -> None:
    watches = [Watch(push_pb2.Watch(store="s"), None, lambda _: None, lambda _: None) for _ in range(100)]
    requests = Requests(watches)
    requests.frames(256)
    for watch in watches:
        requests.unwatch(watch)
    frames = requests.frames(256)

    assert max(len(frame) for frame in frames) <= 256
    assert [number for frame in frames for number in json.loads(frame)["unwatch"]] == [*range(1, 101)]
