"""Watches on `/v1/stream`, from the first row to the end, at a real edge."""

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from statecast.odds.v1.market_pb2 import Market
from testkit.ws_edge.answers import BOARDS
from testkit.ws_edge.edge import RunningEdge
from testkit.ws_edge.odds import market_key, odds_edge, put_market, put_match
from testkit.ws_edge.one_socket import OneSocket
from testkit.ws_edge.stream import stream_client
from ws_edge.model.states import StoreKey

MARKETS = {"store": "odds-by-match", "group": "m1", "interval_ms": 0}
STEPS = [{"store": "odds-by-match", "group_field": "match_id"}]
BOARD = {"store": "matches-by-sport", "group": "football", "steps": STEPS, "interval_ms": 0}


@pytest.fixture
async def edge() -> AsyncIterator[RunningEdge]:
    async with odds_edge() as running:
        put_market(running, "m1", "k1", "first")
        put_market(running, "m1", "k2", "second")
        yield running


async def test_the_first_frame_says_the_limits(edge: RunningEdge) -> None:
    async with stream_client(edge) as client:
        hello = client.frames[0]["hello"]

    assert hello["protocol"] == 2
    assert hello["ping_s"] == 20
    assert hello["max_frame_bytes"] == 1_000_000
    assert hello["max_request_bytes"] == 65_536
    assert 0 < hello["expires_in_s"] <= 86_400


async def test_a_small_watch_begins_in_one_frame(edge: RunningEdge) -> None:
    async with stream_client(edge) as client:
        await client.say(watch=[{"id": 1, **MARKETS}])
        frame = await client.next()

    assert frame["watching"] == {
        "message": "statecast.odds.v1.Market",
        "key_field": "market_id",
        "sort_field": "market_id",
        "limit": 100,
    }
    assert [row["row"]["name"] for row in frame["rows"]] == ["first", "second"]
    assert all(row.keys() == {"row"} for row in frame["rows"])
    assert frame["rows"][0]["row"]["suspended"] is False
    assert frame["token"]
    assert frame["current"] is True


async def test_a_key_is_a_range_of_one(edge: RunningEdge) -> None:
    key = StoreKey("market-by-key", "k1")
    async with stream_client(edge) as client:
        await client.begin({"id": 1, "store": "market-by-key", "group": "k1", "interval_ms": 0})
        assert client.rows[1, ""] == {}
        edge.query.put(key, Market(market_id="k1", name="there"))
        await client.next()
        assert client.rows[1, ""][""]["name"] == "there"
        edge.query.delete(key)
        frame = await client.next()

    assert frame["rows"] == [{"left": True}]
    assert client.rows[1, ""] == {}


async def test_a_change_is_its_row_and_a_token(edge: RunningEdge) -> None:
    async with stream_client(edge) as client:
        await client.begin({"id": 1, **MARKETS})
        put_market(edge, "m1", "k2", "other")
        frame = await client.next()

    assert frame.keys() == {"id", "rows", "token"}
    assert [row.keys() for row in frame["rows"]] == [{"row"}]
    assert client.rows[1, ""]["k2"]["name"] == "other"


async def test_a_delta_has_the_changed_fields_alone(edge: RunningEdge) -> None:
    async with stream_client(edge) as client:
        await client.begin({"id": 1, **MARKETS, "delta": True})
        put_market(edge, "m1", "k2", "other")
        frame = await client.next()

    assert frame["rows"] == [{"key": "k2", "delta": {"name": "other"}}]
    assert client.rows[1, ""]["k2"]["market_id"] == "k2"


async def test_rows_have_the_fields_that_were_asked_for(edge: RunningEdge) -> None:
    async with stream_client(edge) as client:
        await client.say(watch=[{"id": 1, **MARKETS, "fields": ["name"]}])
        frame = await client.next()

    assert "key_field" not in frame["watching"]
    assert frame["rows"][0] == {"key": "k1", "sort": "k1", "row": {"name": "first"}}


async def test_a_change_of_no_field_that_was_asked_for_makes_no_frame(edge: RunningEdge) -> None:
    async with stream_client(edge) as client:
        await client.begin({"id": 1, **MARKETS, "fields": ["suspended"]})
        put_market(edge, "m1", "k1", "unseen")
        edge.query.put(market_key("m1", "k1"), Market(market_id="k1", match_id="m1", name="unseen", suspended=True))
        frame = await client.next()

    assert frame["rows"] == [{"key": "k1", "row": {"suspended": True}}]


async def test_a_token_resumes_after_all_that_was_sent(edge: RunningEdge) -> None:
    async with stream_client(edge) as client:
        await client.begin({"id": 1, **MARKETS})
        token = client.tokens[1, ""]
    put_market(edge, "m1", "k2", "meanwhile")
    async with stream_client(edge) as client:
        await client.say(watch=[{"id": 1, **MARKETS, "token": token}])
        frame = await client.next()

    assert frame["watching"]["resumed"] is True
    assert [row["row"]["name"] for row in frame["rows"]] == ["meanwhile"]
    assert frame["current"] is True


@pytest.mark.parametrize("other", [{"group": "m2"}, {"limit": 5}, {"fields": ["name"]}, {"reverse": True}])
async def test_a_token_of_another_question_begins_anew(edge: RunningEdge, other: dict[str, Any]) -> None:
    async with stream_client(edge) as client:
        await client.begin({"id": 1, **MARKETS})
        await client.begin({"id": 2, **MARKETS, **other, "token": client.tokens[1, ""]})
        frame = client.frames[-1]

    assert "resumed" not in frame["watching"]


async def test_a_watch_is_changed_by_its_end_and_another(edge: RunningEdge) -> None:
    async with stream_client(edge) as client:
        await client.begin({"id": 1, **MARKETS})
        await client.say(unwatch=[1], watch=[{"id": 2, **MARKETS, "limit": 1, "token": client.tokens[1, ""]}])
        await client.until_current(2)
        put_market(edge, "m1", "k1", "later")
        frame = await client.next()

    assert client.ended == {1: {}}
    assert frame["id"] == 2


async def test_an_end_that_has_come_already_is_not_told_again(edge: RunningEdge) -> None:
    async with stream_client(edge) as client:
        await client.say(watch=[{"id": 1, "store": "?"}], unwatch=[])
        await client.next()
        await client.say(unwatch=[1], ping={})
        frame = await client.next()

    assert client.ended[1]["code"] == "unknown_store"
    assert frame == {"ping": {}}


async def test_an_id_is_not_used_again(edge: RunningEdge) -> None:
    async with stream_client(edge) as client:
        await client.say(watch=[{"id": 3, **MARKETS}, {"id": 3, **MARKETS}])
        frames = [await client.next(), await client.next()]

    [error] = [frame["error"] for frame in frames if "error" in frame]
    assert error["code"] == "id_used"
    assert client.ended == {}


async def test_a_misspelt_field_is_named_once(edge: RunningEdge) -> None:
    async with stream_client(edge) as client:
        await client.say(watch=[{"id": 1, **MARKETS, "limmit": 1}, {"id": 2, **MARKETS, "limmit": 1}])
        await client.say(ping={})
        while "ping" not in client.frames[-1]:
            await client.next()
        await client.until_current(2)

    [warning] = [frame["warning"] for frame in client.frames if "warning" in frame]
    assert warning["code"] == "unknown_field"
    assert "limmit" in warning["message"]


async def test_a_watch_that_is_told_ten_times_a_second_counts_ten_times() -> None:
    watches = [{"id": n, "store": "market-by-key", "group": f"k{n}", "interval_ms": 100} for n in (1, 2, 3)]
    limits = {"min_interval_ms": 100, "default_interval_ms": 1000, "consumer_rows": 25}
    async with odds_edge(**limits) as edge, stream_client(edge) as client:
        await client.say(watch=watches)
        while not client.ended:
            await client.next()
        await client.say(watch=[{**watches[0], "id": n, "interval_ms": 1000} for n in range(4, 9)])
        await client.until_current(8)

    assert client.ended.keys() == {3}
    assert client.ended[3]["code"] == "too_many_watches"


def test_a_shorter_interval_never_counts_less() -> None:
    context = OneSocket().session.context
    counts = [context.rows_counted(100, context.interval(ms, BOARDS)) for ms in (60_000, 1000, 700, 200, 100, 1, 0)]

    assert counts == [100, 100, 100, 104, 109, 109, 109]


@pytest.mark.parametrize("limits", [{"max_places": 1}, {"consumer_rows": 250}])
async def test_steps_that_bring_too_much_end_their_watch_and_all_that_it_counted(limits: dict[str, int]) -> None:
    async with odds_edge(**limits) as edge, stream_client(edge) as client:
        put_match(edge, "m1")
        put_match(edge, "m2")
        await client.say(watch=[{"id": 1, **BOARD}])
        while not client.ended:
            await client.next()
        await client.begin({"id": 2, **BOARD, "limit": 1})

    assert client.ended[1]["code"] == "too_many_rows"
    assert client.rows.keys() >= {(2, ""), (2, "m1")}


async def test_a_ninth_list_of_fields_of_a_store_ends_its_watch(edge: RunningEdge) -> None:
    names = ["market_id", "match_id", "name", "suspended"]
    lists = [names[:count] for count in range(1, 5)] + [[name] for name in names[1:]] + [names[1:], names[2:]]
    async with stream_client(edge) as client:
        await client.say(watch=[{"id": n, **MARKETS, "fields": each} for n, each in enumerate(lists, 1)])
        while not client.ended:
            await client.next()
        await client.say(unwatch=[8], watch=[{"id": 10, **MARKETS, "fields": lists[8]}])
        await client.until_current(10)

    assert client.ended[9]["code"] == "too_many_field_lists"
    assert client.ended.keys() == {8, 9}


@pytest.mark.parametrize(
    ("watch", "code"),
    [
        ({"store": "staff-odds", "group": "g"}, "unknown_store"),
        ({"store": "bets-by-customer", "group": "customer-0002"}, "forbidden"),
        ({"store": "odds-by-match"}, "malformed_watch"),
        ({"channel": "unknown"}, "unknown_channel"),
    ],
)
async def test_a_watch_that_cannot_be_ends_with_the_reason(edge: RunningEdge, watch: dict[str, Any], code: str) -> None:
    async with stream_client(edge) as client:
        await client.say(watch=[{"id": 1, **watch}, {"id": 2, **MARKETS}])
        await client.until_current(2)
        while not client.ended:
            await client.next()

    assert client.ended[1]["code"] == code
    assert "retry_ms" not in client.ended[1]


async def test_json_in_a_binary_frame_is_read(edge: RunningEdge) -> None:
    async with stream_client(edge) as client:
        await client.socket.send(json.dumps({"watch": [{"id": 1, **MARKETS}]}).encode())
        await client.socket.send(b"")
        await client.until_current(1)

    assert client.rows[1, ""].keys() == {"k1", "k2"}


async def test_steps_bring_places_below_their_rows(edge: RunningEdge) -> None:
    put_match(edge, "m1")
    put_match(edge, "m2")
    async with stream_client(edge) as client:
        await client.begin({"id": 1, **BOARD})
        assert client.rows[1, ""].keys() == {"m1", "m2"}
        assert client.rows[1, "m1"].keys() == {"k1", "k2"}
        assert client.rows[1, "m2"] == {}
        put_market(edge, "m2", "k3")
        await client.next()
        assert client.rows[1, "m2"].keys() == {"k3"}
        tokens = dict(client.tokens)
    put_market(edge, "m2", "k4")
    below = [{"path": [path], "token": token} for (_, path), token in tokens.items() if path]
    async with stream_client(edge) as client:
        await client.begin({"id": 1, **BOARD, "token": tokens[1, ""], "below": below})

    watchings = [frame["watching"] for frame in client.frames if "watching" in frame]
    assert all(each["resumed"] for each in watchings)
    assert len(watchings) == 3
    assert client.rows[1, "m2"].keys() == {"k4"}


async def test_a_row_that_leaves_ends_its_places(edge: RunningEdge) -> None:
    put_match(edge, "m1")
    async with stream_client(edge) as client:
        await client.begin({"id": 1, **BOARD})
        edge.query.delete(StoreKey("matches-by-sport", "football", "m1", "m1"))
        frame = await client.next()
        put_market(edge, "m1", "k9")
        await client.say(ping={})
        after = await client.next()

    assert frame["rows"] == [{"key": "m1", "left": True}]
    assert client.rows.keys() == {(1, "")}
    assert "ping" in after
