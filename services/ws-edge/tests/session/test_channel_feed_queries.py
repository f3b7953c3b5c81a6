"""A socket that is attached to a channel is fed the queries that are added to it, as by its own requests."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from httpx import AsyncClient

from statecast.odds.v1.match_pb2 import Match
from statecast.push.v1.push_pb2 import ClientFrame, ServerFrame
from statecast.push.v1.query_pb2 import QueryPosition, QueryProgress
from statecast.push.v1.subscription_pb2 import Start
from testkit.ws_edge.channels import add, channel_of
from testkit.ws_edge.edge import RunningEdge, until
from testkit.ws_edge.odds import QueryReader, board, match_key, odds_edge, put_market, put_match
from ws_edge.codec.stream_codec import BINARY_SUBPROTOCOL


@pytest.fixture
async def edge() -> AsyncIterator[RunningEdge]:
    """An edge that serves the odds, and keeps channels; a match with a market is there."""
    async with odds_edge(kafka=True) as running:
        put_match(running, "m1")
        put_market(running, "m1", "a")
        yield running


@asynccontextmanager
async def begun(edge: RunningEdge, channel: str, **begin: Any) -> AsyncIterator[QueryReader]:
    """A socket of the channel that has begun."""
    async with edge.socket(f"{channel}/stream") as socket:
        reader = QueryReader(socket)
        await reader.until(("channel_attached", "", ""))
        await reader.say(id="b", begin=begin)
        yield reader


async def test_a_query_of_a_channel_follows_rows_and_ends_with_its_removal(
    edge: RunningEdge, alice: AsyncClient
) -> None:
    channel = await channel_of(alice, board())
    async with begun(edge, channel) as reader:
        await reader.until(("entered", "m1", "a"))
        start = list(reader.events)
        put_match(edge, "m2")
        put_market(edge, "m2", "b")
        await reader.until(("entered", "", "m2"), ("entered", "m2", "b"))
        edge.query.delete(match_key("m1"))
        await reader.until(("left", "", "m1"))
        await alice.delete(f"{channel}/subscriptions/query", params={"name": "q"})
        await reader.until(("query_unwatched", "", ""))
        await until(lambda: edge.parts.hub.subscriptions == 2)  # the channel's revision, and the consumer's revocation

    assert reader.frames[0]["channel_attached"]["subscriptions"] == 1
    assert (reader.frames[1]["id"], reader.frames[1]["query"]) == ("b", {"name": "q"})
    assert start == [
        ("snapshot", "", "football"),
        ("entered", "", "m1"),
        ("snapshot", "m1", "m1"),
        ("entered", "m1", "a"),
    ]


async def test_a_query_that_is_added_later_follows(edge: RunningEdge, alice: AsyncClient) -> None:
    channel = await channel_of(alice)
    async with begun(edge, channel) as reader:
        await add(alice, channel, board())
        await reader.until(("entered", "m1", "a"))
        await add(alice, channel, board("other"))
        await reader.until(("snapshot", "", "football"), ("entered", "m1", "a"))

    assert reader.frames[-1]["query"]["name"] == "other"


async def test_a_query_goes_on_at_another_edge_with_positions(edge: RunningEdge, alice: AsyncClient) -> None:
    channel = await channel_of(alice, board())
    async with begun(edge, channel) as before:
        await before.until(("entered", "m1", "a"))
    await add(alice, channel, board("tennis", group="tennis"))
    put_market(edge, "m1", "b")
    put_match(edge, "m2")
    held = [{"name": "q", "after": before.after}]
    async with (
        odds_edge(kafka=True, beside=edge) as other,
        begun(other, channel, after_queries=held) as after,
    ):
        await after.until(("changed", "m1", "b"), ("snapshot", "m2", "m2"), ("snapshot", "", "tennis"))

    assert set(after.events) == {
        ("recovered", "", "football"),
        ("recovered", "m1", "m1"),
        ("changed", "m1", "b"),
        ("changed", "", "m2"),
        ("snapshot", "m2", "m2"),
        ("snapshot", "", "tennis"),
    }
    assert len(after.events) == 6


def of_query(frame: dict[str, Any]) -> str:
    """The name of the query that a frame is about."""
    return str(frame.get("query", {}).get("name", ""))


async def test_another_interval_repeats_nothing(edge: RunningEdge, alice: AsyncClient) -> None:
    channel = await channel_of(alice, board())
    async with begun(edge, channel) as reader:
        await reader.until(("entered", "m1", "a"))
        await add(alice, channel, board(interval_ms=50))
        await reader.until(("recovered", "m1", "m1"))
        again = list(reader.events)
        put_market(edge, "m1", "b")
        await reader.until(("entered", "m1", "b"))

    assert again == [("recovered", "", "football"), ("recovered", "m1", "m1")]
    assert reader.frames[-1]["query"] == {"name": "q", "path": ["m1"]}


async def test_another_query_of_the_same_name_takes_the_place_of_the_first(
    edge: RunningEdge, alice: AsyncClient
) -> None:
    channel = await channel_of(alice, board())
    async with begun(edge, channel) as reader:
        await reader.until(("entered", "m1", "a"))
        await add(alice, channel, board(limit=5))
        await reader.until(("entered", "m1", "a"))
        watched = reader.frames[-4]["range_watched"]

    assert reader.events[:2] == [("query_unwatched", "", ""), ("snapshot", "", "football")]
    assert watched["range"]["limit"] == 5


async def test_a_query_that_watches_too_much_ends_by_its_name_and_the_others_go_on() -> None:
    async with (
        odds_edge(kafka=True, max_query_ranges=3) as edge,
        AsyncClient(base_url=f"http://{edge.address}", headers=edge.headers(), verify=False) as client,
    ):
        put_match(edge, "m1")
        channel = await channel_of(client, board(), board("tennis", group="tennis"))
        async with begun(edge, channel) as reader:
            await reader.until(("snapshot", "m1", "m1"), ("snapshot", "", "tennis"))
            put_match(edge, "m2")
            await reader.until(("query_unwatched", "", ""))
            error, ended = reader.frames[-2:]
            edge.query.put(match_key("m3")._replace(group="tennis"), Match(match_id="m3"))
            await reader.until(("entered", "", "m3"))

    assert (error["id"], error["error"]["code"]) == ("b", "too_many_subscriptions")
    assert ended == {"id": "b", "query_unwatched": {"name": "q"}}
    assert of_query(reader.frames[-1]) == "tennis"


async def test_a_query_that_the_client_watches_itself_stays_as_it_is(edge: RunningEdge, alice: AsyncClient) -> None:
    channel = await channel_of(alice, board(limit=5))
    async with edge.socket(f"{channel}/stream") as socket:
        reader = QueryReader(socket)
        await reader.watch(frame_id="own")
        await reader.until(("entered", "m1", "a"))
        await reader.say(id="b", begin={})
        await add(alice, channel, board("other"))
        await reader.until(("entered", "m1", "a"))

    assert {of_query(frame) for frame in reader.frames if frame.get("id") == "b"} == {"other"}


async def test_a_begin_with_an_impossible_position_of_a_query_is_refused(edge: RunningEdge, alice: AsyncClient) -> None:
    channel = await channel_of(alice, board())
    impossible = [{"name": "q", "after": [{"group": "football", "through": {"epoch": 1, "offset": -2}}]}]
    async with begun(edge, channel, after_queries=impossible) as reader:
        await reader.until(("error", "", "malformed_frame"))

    assert reader.frames[-1]["id"] == "b"


async def test_the_binary_codec_does_the_same(edge: RunningEdge, alice: AsyncClient) -> None:
    channel = await channel_of(alice, board())
    held = QueryPosition(group="football")
    held.through.epoch, held.through.offset = 7, edge.query.offset
    request = ClientFrame(id="b")
    request.begin.after_queries.append(QueryProgress(name="q", after=[held]))
    async with edge.socket(f"{channel}/stream", subprotocols=[BINARY_SUBPROTOCOL]) as socket:
        await socket.recv()
        await socket.send(request.SerializeToString())
        frames = [ServerFrame.FromString(bytes(await socket.recv(decode=False))) for _ in range(2)]

    assert [(list(frame.query.path), frame.range_watched.start) for frame in frames] == [
        ([], Start.START_RECOVERED),
        (["m1"], Start.START_SNAPSHOT),
    ]
