"""Frames of clients are read leniently, part by part."""

import json
from functools import partial
from typing import Any

import pytest
from google.protobuf.struct_pb2 import Value

from statecast.odds.v1.market_pb2 import Market
from statecast.odds.v1.match_pb2 import Match
from statecast.push.v2.push_pb2 import ClientFrame, PlaceToken, Renew, Step, Watch
from testkit.ws_edge.answers import ALICE
from ws_edge.codec.requests import (
    MARKS,
    MAX_FIELDS,
    MAX_UNKNOWN,
    ChannelRequest,
    ClientRequest,
    RefusedWatch,
    WatchRequest,
    read_binary,
    read_json,
)
from ws_edge.errors import MalformedFrameError
from ws_edge.model.authorization import OwnerRule
from ws_edge.model.questions import Question
from ws_edge.model.stores import Store, find

EVERYONE = OwnerRule(None, everyone=True)
STORES = {
    "odds-by-match": Store("odds-by-match", Market, True, EVERYONE),
    "market-by-key": Store("market-by-key", Market, False, EVERYONE),
    "matches": Store("matches", Match, True, EVERYONE),
    "documents": Store("documents", Value, False, EVERYONE),
}
FIND = partial(find, STORES, ALICE)
MARKETS = {"store": "odds-by-match", "group": "m1"}


def read(**document: Any) -> ClientRequest:
    return read_json(json.dumps(document), FIND)


def only(request: ClientRequest) -> WatchRequest:
    [watch] = request.watches
    assert isinstance(watch, WatchRequest)
    return watch


def refusal(**watch: Any) -> RefusedWatch:
    [refused] = read(watch=[{"id": 7, **watch}]).watches
    assert isinstance(refused, RefusedWatch)
    assert refused.id == 7
    return refused


def test_a_watch_of_many_rows_is_a_range() -> None:
    watch = only(read(watch=[{"id": 1, **MARKETS, "limit": 20, "reverse": True, "token": "t", "interval_ms": 0}]))

    assert watch.question == Question(STORES["odds-by-match"], "m1", limit=20, reverse=True)
    assert (watch.token, watch.interval_ms) == ("t", 0)


def test_a_watch_is_read_in_any_form_of_its_json() -> None:
    watch = {**MARKETS, "limit": "20", "intervalMs": 1e3, "sortFrom": "a", "sort_to": None, "steps": None}

    assert only(read(watch=[{"id": "1", **watch}])) == only(
        read(watch=[{"id": 1, **MARKETS, "limit": 20, "interval_ms": 1000, "sort_from": "a"}])
    )


def test_a_field_that_holds_something_else_is_named() -> None:
    step = {"store": "matches", "group_field": 5}

    assert str(refusal(**MARKETS, steps=[step]).error) == "it is no watch: steps.group_field is 5: it must be a text"


def test_a_watch_of_one_row_is_a_key() -> None:
    watch = only(read(watch=[{"id": 1, "store": "market-by-key", "group": "k"}]))

    assert watch.question == Question(STORES["market-by-key"], "k")
    assert watch.interval_ms is None


def test_a_list_of_fields_is_the_same_in_any_order() -> None:
    watch = only(read(watch=[{"id": 1, **MARKETS, "fields": ["suspended", "outcomes", "suspended"]}]))

    assert watch.fields == ("outcomes", "suspended")


def test_a_query_has_its_steps_and_the_tokens_below() -> None:
    step = {"store": "odds-by-match", "group_field": "match_id", "fields": ["name"]}
    below = [{"path": ["m1"], "token": "t"}]
    watch = only(read(watch=[{"id": 1, "store": "matches", "group": "g", "steps": [step], "below": below}]))

    assert [each.store.name for each in watch.steps] == ["odds-by-match"]
    assert watch.steps[0].fields == ("name",)
    assert watch.below == {("m1",): "t"}


def test_a_channel_is_watched_by_its_id() -> None:
    request = read(watch=[{"id": 5, "channel": "q1", "below": [{"path": ["board"], "token": "t"}]}])

    assert request.watches == [ChannelRequest(5, "q1", {("board",): "t"})]


def test_all_parts_of_a_frame_count() -> None:
    request = read(unwatch=[1, "2"], watch=[{"id": 3, **MARKETS}], renew={"ticket": "x"}, ping={})

    assert request.unwatch == [1, 2]
    assert (request.ticket, request.ping, request.parts) == ("x", True, 3)


@pytest.mark.parametrize(
    ("frame", "parts"),
    [
        ({"unwatch": [0, 0, 0]}, 3),
        ({"watch": [0, {}, {"id": -1}]}, 3),
        ({"x": 1, "y": 2}, 2),
        ({"watch": [{"id": 1, **MARKETS, "below": [{"path": [name], "token": "t"} for name in "abc"]}]}, 4),
    ],
)
def test_faults_and_tokens_of_places_count_as_well(frame: dict[str, Any], parts: int) -> None:
    assert read(**frame).parts == parts


def test_a_few_unknown_fields_are_named() -> None:
    unknown = {f"x{number}": 0 for number in range(5000)}

    assert len(read(**unknown).unknown) == MAX_UNKNOWN


def test_a_text_without_an_end_is_looked_at_once() -> None:
    """A frame of 64 KiB held the loop for 13 s, as each quote in it was taken for a beginning."""
    text = '"' + '\\"' * 100 + "[" * 100

    assert MARKS.findall(text) == [text]


@pytest.mark.parametrize("where", ["watch", "step"])
def test_a_list_of_fields_is_bounded(where: str) -> None:
    fields = {"fields": [f"x{number}" for number in range(MAX_FIELDS + 1)]}
    step = {"store": "documents", "group_field": "x"}
    watch = {"store": "documents", "group": "g", "steps": [step | (fields if where == "step" else {})]}
    refused = refusal(**watch | (fields if where == "watch" else {}))

    assert refused.error.code == "malformed_watch"
    assert str(MAX_FIELDS) in str(refused.error)


def test_unknown_fields_are_ignored_and_named() -> None:
    request = read(watch=[{"id": 1, **MARKETS, "limmit": 5}], unwach=[1])

    assert only(request).question == Question(STORES["odds-by-match"], "m1", limit=0)
    texts = {each.name: each.text for each in request.unknown}
    assert texts.keys() == {"limmit", "unwach"}
    assert texts["limmit"].startswith("watch 1: limmit is unknown and ignored")
    assert "limit" in texts["limmit"].split(";")[1]


@pytest.mark.parametrize(
    ("watch", "code"),
    [
        ({**MARKETS, "limit": "many"}, "malformed_watch"),
        ({**MARKETS, "limit": -1}, "malformed_watch"),
        ({**MARKETS, "group": "\ud800"}, "malformed_watch"),
        ({**MARKETS, "group": ""}, "malformed_watch"),
        ({**MARKETS, "fields": ["nmae"]}, "malformed_watch"),
        ({**MARKETS, "steps": [{"store": "matches", "group_field": "outcomes"}]}, "malformed_watch"),
        ({**MARKETS, "channel": "q1"}, "malformed_watch"),
        ({"store": "market-by-key", "group": "k", "sort_from": "a"}, "malformed_watch"),
        ({"store": "odds", "group": "k"}, "unknown_store"),
        ({"steps": 5}, "malformed_watch"),
        ({**MARKETS, "steps": [5]}, "malformed_watch"),
        ({**MARKETS, "fields": "name"}, "malformed_watch"),
        ({**MARKETS, "fields": [None]}, "malformed_watch"),
        ({**MARKETS, "group": 5}, "malformed_watch"),
        ({**MARKETS, "limit": True}, "malformed_watch"),
        ({**MARKETS, "limit": 2**32}, "malformed_watch"),
        ({**MARKETS, "reverse": 1}, "malformed_watch"),
    ],
)
def test_a_wrong_watch_is_refused_by_its_id(watch: dict[str, Any], code: str) -> None:
    assert refusal(**watch).error.code == code


def test_a_field_with_half_of_a_character_is_ignored_and_named() -> None:
    request = read(**{"a\udfff": 1, "watch": [{"id": 1, **MARKETS}]})

    assert [each.name for each in request.unknown] == ["a\\udfff"]
    assert [each.id for each in request.watches] == [1]


def test_a_wrong_watch_does_not_hold_up_the_others() -> None:
    request = read(watch=[{"id": 1, "store": "?"}, {"id": 2, **MARKETS}, {"store": "odds-by-match"}, 5])

    assert [each.id for each in request.watches] == [1, 2]
    assert len(request.errors) == 2


@pytest.mark.parametrize("text", ["", "{", "[]", "5", "[" * 100_000, b"\xff\xfe", '{"a":"\\ud800"'])
def test_what_is_no_object_of_json_is_a_malformed_frame(text: str | bytes) -> None:
    with pytest.raises(MalformedFrameError):
        read_json(text, FIND)


def test_the_place_of_a_fault_in_json_is_named() -> None:
    with pytest.raises(MalformedFrameError, match="not JSON at character 17"):
        read_json('{"watch":[{"id":1', FIND)


@pytest.mark.parametrize(
    ("wrong", "shown"),
    [
        ({"unwatch": ["x" * 9999]}, 'unwatch: "xxx'),
        ({"unwatch": [[[]]]}, "unwatch: a list is no id"),
        ({"watch": [{"id": 2**32}]}, "watch: 4294967296 is no id: an id is a whole number from 1 to 4294967295"),
        ({"watch": [{"id": 1.5}]}, "watch: 1.5 is no id"),
        ({"watch": [{"id": "\ud800"}]}, 'watch: "\\ud800" is no id'),
        ({"watch": [{"store": "odds-by-match"}]}, "watch: an object has no id"),
        ({"watch": [7]}, "watch: 7 has no id"),
    ],
)
def test_the_error_of_a_wrong_id_shows_it(wrong: dict[str, Any], shown: str) -> None:
    [error] = read(**wrong).errors

    assert str(error).startswith(shown)
    assert len(str(error)) < 200


@pytest.mark.parametrize("name", ["[x.y]", "\ud800", ""])
def test_an_unknown_field_of_any_name_is_ignored(name: str) -> None:
    request = read(
        watch=[{"id": 1, **MARKETS, name: 1, "steps": [{"store": "matches", "group_field": "match_id", name: 1}]}]
    )

    assert only(request).question == Question(STORES["odds-by-match"], "m1", limit=0)
    assert len(request.unknown) == 2


def test_a_number_without_end_costs_a_watch_no_id() -> None:
    text = '{"watch": [{"id": 5, "store": "matches", "group": "m", "limit": %s}]}' % ("9" * 5000)
    [refused] = read_json(text, FIND).watches

    assert isinstance(refused, RefusedWatch)
    assert (refused.id, refused.error.code) == (5, "malformed_watch")


@pytest.mark.parametrize("wrong", [{"unwatch": 5}, {"unwatch": [0]}, {"watch": {}}, {"renew": {}}, {"renew": 5}])
def test_a_wrong_part_of_a_frame_is_an_error_without_an_id(wrong: dict[str, Any]) -> None:
    request = read(**wrong)

    assert [error.code for error in request.errors] == ["malformed_frame"]


def test_a_binary_frame_asks_for_the_same() -> None:
    step = Step(store="odds-by-match", group_field="match_id")
    watch = Watch(
        id=1, store="matches", group="g", interval_ms=0, steps=[step], below=[PlaceToken(path=["m"], token="t")]
    )
    frame = ClientFrame(unwatch=[4], watch=[watch, Watch(store="matches")], renew=Renew(ticket="x"))
    frame.ping.SetInParent()
    request = read_binary(frame.SerializeToString(), FIND)

    assert only(request).below == {("m",): "t"}
    assert (request.unwatch, request.ticket, request.ping, len(request.errors)) == ([4], "x", True, 1)


@pytest.mark.parametrize("deep", ["[" * 30_000 + "]" * 30_000, '{"a":' * 9_000 + '"]}\\""' + "}" * 9_000])
def test_what_is_nested_too_deep_refuses_its_own_watch_or_is_ignored(deep: str) -> None:
    other = json.dumps({"id": 9, **MARKETS, "unknown": "in"}).replace('"in"', deep)
    request = read_json(f'{{"watch": [{{"id": 7, "store": "matches", "group": {deep}}}, {other}]}}', FIND)

    refused, watch = request.watches
    assert isinstance(refused, RefusedWatch)
    assert (refused.id, refused.error.code) == (7, "malformed_watch")
    assert isinstance(watch, WatchRequest)
    assert watch.id == 9
