"""Queries in steps over a real socket: watches follow the rows, and no row is told without its parents."""

from typing import Any

import pytest

from statecast.odds.v1.market_pb2 import Market
from statecast.odds.v1.match_pb2 import Match
from statecast.push.v1.push_pb2 import ClientFrame, ServerFrame
from statecast.push.v1.query_pb2 import Query, QueryStep, WatchQuery
from statecast.push.v1.range_pb2 import Range
from testkit.ws_edge.edge import until
from testkit.ws_edge.odds import (
    FIRST,
    MARKETS,
    PRICES,
    QueryReader,
    market_key,
    match_key,
    odds_edge,
    put_market,
    put_match,
)
from ws_edge.codec.stream_codec import BINARY_SUBPROTOCOL
from ws_edge.model.states import StoreKey


async def test_markets_follow_their_matches_in_and_out() -> None:
    async with odds_edge() as edge, edge.socket("/v1/stream") as socket:
        put_match(edge, "m1")
        put_market(edge, "m1", "a")
        reader = QueryReader(socket)
        await reader.watch()
        await reader.until(("entered", "m1", "a"))
        begun = list(reader.events)
        put_match(edge, "m2")
        put_market(edge, "m2", "b")
        await reader.until(("entered", "", "m2"), ("entered", "m2", "b"))
        put_market(edge, "m1", "a", "another name")
        await reader.until(("changed", "m1", "a"))
        edge.query.delete(match_key("m1"))
        await reader.until(("left", "", "m1"))
        put_market(edge, "m1", "c")
        put_market(edge, "m2", "d")
        await reader.until(("entered", "m2", "d"))
        after_the_end = list(reader.events)
        hub = edge.parts.hub
        assert hub.unique_keys == 2  # the matches, and the markets of m2

    assert begun == [
        ("snapshot", "", "football"),
        ("entered", "", "m1"),
        ("snapshot", "m1", "m1"),
        ("entered", "m1", "a"),
    ]
    assert reader.frames[0]["id"] == "1"
    assert after_the_end == [("entered", "m2", "d")]
    await until(lambda: hub.subscriptions == 0)


async def test_a_third_step_may_be_a_key() -> None:
    async with odds_edge() as edge, edge.socket("/v1/stream") as socket:
        put_match(edge, "m1")
        put_market(edge, "m1", "a")
        price = StoreKey("market-by-key", "a")
        reader = QueryReader(socket)
        await reader.watch(MARKETS, PRICES)
        await reader.until(("snapshot", "m1/a", "a"))
        edge.query.put(price, Market(name="2500"))
        await reader.until(("entered", "m1/a", "a"))
        edge.query.put(price, Market(name="2600"))
        await reader.until(("changed", "m1/a", "a"))
        named = reader.frames[-1]["range_changed"]
        edge.query.delete(price)
        await reader.until(("left", "m1/a", "a"))

    assert named["row"]["name"] == "2600"
    assert (named["range"], "through" in named) == ({"store": "market-by-key", "group": "a"}, True)


async def test_a_row_that_names_another_group_changes_what_is_below_it() -> None:
    async with odds_edge() as edge, edge.socket("/v1/stream") as socket:
        put_match(edge, "m1", of="x")
        put_market(edge, "x", "a")
        put_market(edge, "y", "b")
        reader = QueryReader(socket)
        await reader.watch()
        await reader.until(("entered", "m1", "a"))
        put_match(edge, "m1", of="y")
        await reader.until(("entered", "m1", "b"))
        moved = list(reader.events)
        put_match(edge, "m1", of="")
        await reader.until(("unwatched", "m1", "y"))

    assert moved == [("changed", "", "m1"), ("unwatched", "m1", "x"), ("snapshot", "m1", "y"), ("entered", "m1", "b")]


async def test_two_rows_that_name_one_group_are_told_apart_and_read_once() -> None:
    async with odds_edge() as edge, edge.socket("/v1/stream") as socket:
        for match_id in ("m1", "m2"):
            put_match(edge, match_id, of="x")
        put_market(edge, "x", "a")
        reader = QueryReader(socket)
        await reader.watch()
        await reader.until(("entered", "m1", "a"), ("entered", "m2", "a"))
        assert edge.parts.hub.unique_keys == 2
        edge.query.delete(match_key("m1"))
        await reader.until(("left", "", "m1"))
        put_market(edge, "x", "a", "again")
        await reader.until(("changed", "m2", "a"))


async def test_a_query_is_resumed_with_what_was_missed_at_every_level() -> None:
    async with odds_edge() as edge:
        for match_id in ("m1", "m2", "m3"):
            put_match(edge, match_id)
            put_market(edge, match_id, f"of-{match_id}")
        async with edge.socket("/v1/stream") as socket:
            before = QueryReader(socket)
            await before.watch()
            await before.until(*[("entered", f"m{each}", f"of-m{each}") for each in (1, 2, 3)])
        put_market(edge, "m1", "of-m1", "another name")
        edge.query.delete(match_key("m2"))
        put_match(edge, "m3", home="another")
        put_match(edge, "m4")
        put_market(edge, "m4", "of-m4")
        async with edge.socket("/v1/stream") as socket:
            resumed = QueryReader(socket)
            await resumed.watch(after=before.after)
            await resumed.until(("changed", "m1", "of-m1"), ("entered", "m4", "of-m4"), ("recovered", "m3", "m3"))

    assert set(resumed.events) == {
        ("recovered", "", "football"),
        ("recovered", "m1", "m1"),
        ("changed", "m1", "of-m1"),
        ("left", "", "m2"),
        ("changed", "", "m3"),
        ("recovered", "m3", "m3"),
        ("changed", "", "m4"),
        ("snapshot", "m4", "m4"),
        ("entered", "m4", "of-m4"),
    }
    assert len(resumed.events) == 9


async def test_where_the_first_range_is_told_anew_all_below_it_is() -> None:
    async with odds_edge() as edge:
        put_match(edge, "m1")
        put_market(edge, "m1", "a")
        async with edge.socket("/v1/stream") as socket:
            before = QueryReader(socket)
            await before.watch()
            await before.until(("entered", "m1", "a"))
        below = [each for each in before.after if each["path"]]
        async with edge.socket("/v1/stream") as socket:
            resumed = QueryReader(socket)
            await resumed.watch(after=below)
            await resumed.until(("entered", "m1", "a"))

    assert len(below) == 1
    assert ("snapshot", "m1", "m1") in resumed.events


async def test_a_position_of_another_group_is_no_position() -> None:
    async with odds_edge() as edge:
        put_match(edge, "m1", of="x")
        put_market(edge, "y", "a")
        async with edge.socket("/v1/stream") as socket:
            before = QueryReader(socket)
            await before.watch()
            await before.until(("snapshot", "m1", "x"))
        put_match(edge, "m1", of="y")
        async with edge.socket("/v1/stream") as socket:
            resumed = QueryReader(socket)
            await resumed.watch(after=before.after)
            await resumed.until(("snapshot", "m1", "y"), ("entered", "m1", "a"))


async def test_a_query_that_is_no_longer_watched_is_silent_and_leaves_nothing_behind() -> None:
    async with odds_edge() as edge, edge.socket("/v1/stream") as socket:
        put_match(edge, "m1")
        put_market(edge, "m1", "a")
        reader = QueryReader(socket)
        await reader.watch()
        await reader.until(("entered", "m1", "a"))
        await reader.say(id="2", unwatch_query={"name": "q"})
        ended = await reader.next()
        await until(lambda: edge.parts.hub.unique_keys == 0)
        await reader.watch(frame_id="3")
        await reader.until(("entered", "m1", "a"))
        await reader.watch(frame_id="4")
        await reader.until(("entered", "m1", "a"))
        assert edge.parts.hub.subscriptions == 2

    assert ended == {"id": "2", "query_unwatched": {"name": "q"}}


async def test_a_step_shows_what_its_consumer_may_see() -> None:
    """Bets stand in groups of their customers; a key ends when its row becomes somebody else's."""
    async with odds_edge() as edge, edge.socket("/v1/stream") as socket:
        for match_id in ("customer-0001", "customer-0002"):
            put_match(edge, match_id)
            edge.query.put(StoreKey("bets-by-customer", match_id, "1", "bet"), Market(match_id=match_id))
        hidden = StoreKey("hidden-by-match", "customer-0002")
        edge.query.put(hidden, Market(name="customer-0001"))
        bets = QueryReader(socket)
        await bets.watch({"store": "bets-by-customer", "group_field": "match_id"})
        await bets.until(("entered", "", "customer-0002"), ("entered", "customer-0001", "bet"))
        seen = list(bets.events)
        await bets.watch({"store": "hidden-by-match", "group_field": "match_id"})
        await bets.until(("entered", "customer-0002", "customer-0002"))
        edge.query.put(hidden, Market(name="customer-0002"))
        await bets.until(("unwatched", "customer-0002", "customer-0002"))

    assert not [each for each in seen if each[1] == "customer-0002"]
    assert "row" not in bets.frames[-1]


async def test_a_query_costs_what_it_watches() -> None:
    limits = {"max_query_ranges": 2, "consumer_subscriptions": 1000}
    async with odds_edge(**limits) as edge, edge.socket("/v1/stream") as socket:
        put_match(edge, "m1")
        reader = QueryReader(socket)
        await reader.watch(MARKETS | {"limit": 10}, first=FIRST | {"limit": 5})
        await reader.until(("snapshot", "m1", "m1"))
        (account, _) = next(iter(edge.parts.sockets._open)).reservation.accounts
        assert account.subscriptions == 15
        put_match(edge, "m2")
        await reader.until(("error", "", "too_many_subscriptions"))
        assert (account.subscriptions, edge.parts.hub.subscriptions) == (0, 0)
        await reader.watch(MARKETS | {"limit": 600}, first=FIRST | {"limit": 500})
        await reader.until(("error", "", "too_many_subscriptions"))

    assert reader.frames[-1]["id"] == "1"


@pytest.mark.parametrize(
    ("query", "code", "text"),
    [
        ({"name": ""}, "malformed_frame", "1 to 64 characters"),
        ({"steps": []}, "malformed_frame", "give 1 to 3"),
        ({"steps": [MARKETS] * 4}, "malformed_frame", "give 1 to 3"),
        ({"steps": [MARKETS | {"group_field": "match"}]}, "malformed_frame", "'match'; did you mean match_id?"),
        ({"steps": [MARKETS | {"group_field": "status"}]}, "malformed_frame", "no text field 'status'"),
        ({"steps": [MARKETS | {"store": "odds"}]}, "unknown_store", "'odds'"),
        ({"steps": [MARKETS | {"store": "staff-odds"}]}, "forbidden", "staff only"),
        ({"steps": [MARKETS, PRICES | {"limit": 3}]}, "malformed_frame", "one value per group"),
        ({"first": {"store": "market-by-key", "group": "a"}}, "malformed_frame", "one value per group"),
    ],
)
async def test_what_can_be_no_query_is_refused(query: dict[str, Any], code: str, text: str) -> None:
    async with odds_edge() as edge, edge.socket("/v1/stream") as socket:
        reader = QueryReader(socket)
        await reader.say(id="7", watch_query={"query": {"name": "q", "first": FIRST, "steps": [MARKETS]} | query})
        frame = await reader.next()

    assert (frame["id"], frame["error"]["code"]) == ("7", code)
    assert text in frame["error"]["message"]


async def test_binary_frames_say_the_same() -> None:
    query = Query(name="q", first=Range(**FIRST), steps=[QueryStep(**MARKETS)])
    async with odds_edge() as edge, edge.socket("/v1/stream", subprotocols=[BINARY_SUBPROTOCOL]) as socket:
        put_match(edge, "m1")
        put_market(edge, "m1", "a")
        await socket.send(ClientFrame(id="1", watch_query=WatchQuery(query=query)).SerializeToString())
        frames = [ServerFrame.FromString(bytes(await socket.recv(decode=False))) for _ in range(4)]

    assert [(list(frame.query.path), frame.WhichOneof("event")) for frame in frames] == [
        ([], "range_watched"),
        ([], "range_changed"),
        (["m1"], "range_watched"),
        (["m1"], "range_changed"),
    ]
    assert {frame.query.name for frame in frames} == {"q"}
    match, market = Match(), Market()
    assert frames[1].range_changed.row.Unpack(match)
    assert frames[3].range_changed.row.Unpack(market)
    assert (match.match_id, market.market_id) == ("m1", "a")


async def test_a_frame_is_encoded_once_for_ranges_and_queries() -> None:
    async with odds_edge() as edge, edge.socket("/v1/stream") as one, edge.socket("/v1/stream") as other:
        put_match(edge, "m1")
        put_market(edge, "m1", "a")
        readers = QueryReader(one), QueryReader(other)
        for reader in readers:
            await reader.watch()
            await reader.until(("entered", "m1", "a"))
        (watch,) = (each for key, each in edge.parts.hub._watches.items() if key.store == "odds-by-match")
        (row,) = watch.rows()

    assert len(row.frames) == 1
    assert market_key("m1", "a") == row.key
