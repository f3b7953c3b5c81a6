"""A channel is watched as anything else: its rows are its watches by name, and places below."""

import asyncio
from collections.abc import AsyncIterator
from itertools import count

import pytest
from httpx import AsyncClient

from statecast.push.v2.channel_pb2 import ChannelRecord
from testkit.waiting import scaled
from testkit.ws_edge.channels import channel_of, put
from testkit.ws_edge.edge import RunningEdge
from testkit.ws_edge.odds import STORES, put_market
from testkit.ws_edge.stream import BINARY, stream_client
from ws_edge.channels.channels import watch_key

MARKETS = {"store": "odds-by-match", "group": "m1", "interval_ms": 0}


@pytest.fixture
async def edge() -> AsyncIterator[RunningEdge]:
    async with RunningEdge(kafka=True, stores=STORES) as running:
        put_market(running, "m1", "k1")
        put_market(running, "m2", "k2")
        yield running


@pytest.mark.parametrize("subprotocol", [None, BINARY])
async def test_the_watches_of_a_channel_are_its_rows_and_places(
    edge: RunningEdge, alice: AsyncClient, subprotocol: str | None
) -> None:
    channel = await channel_of(alice, board=MARKETS, other={**MARKETS, "group": "m2"})
    async with stream_client(edge, subprotocols=subprotocol and [subprotocol]) as client:
        await client.begin({"id": 5, "channel": channel})

    assert len(client.rows[5, ""]) == (1 if subprotocol else 2)
    assert subprotocol or client.rows[5, ""]["board"] == {"name": "board", "watch": MARKETS}
    assert len(client.rows[5, "board"]) == 1
    assert len(client.rows[5, "other"]) == 1
    assert client.frames[1]["watching"]["message"] == "statecast.push.v2.NamedWatch"
    assert [frame["id"] for frame in client.frames if frame.get("current")] == [5]


async def test_a_record_of_a_newer_edge_is_no_watch(edge: RunningEdge, alice: AsyncClient) -> None:
    """Field 15 is of a kind that this edge does not know."""
    channel = await channel_of(alice, board=MARKETS)
    edge.query.put(watch_key(channel, "newer"), ChannelRecord.FromString(b"\x7a\x02\x08\x01"))
    async with stream_client(edge) as client:
        await client.begin({"id": 1, "channel": channel})

    assert client.rows[1, ""].keys() == {"board"}
    assert [frame for frame in client.frames if "ended" in frame] == []


async def test_a_socket_follows_what_is_added_to_a_channel_replaced_and_removed(
    edge: RunningEdge, alice: AsyncClient
) -> None:
    channel = await channel_of(alice)
    async with stream_client(edge) as client:
        await client.begin({"id": 1, "channel": channel})
        await put(alice, channel, "board", MARKETS)
        while (1, "board") not in client.tokens:
            await client.next()
        assert client.rows[1, "board"].keys() == {"k1"}
        await put(alice, channel, "board", {**MARKETS, "group": "m2"})
        while client.rows.get((1, "board"), {}).keys() != {"k2"}:
            await client.next()
        await alice.delete(f"/v1/channels/{channel}/watches/board")
        while client.rows.keys() != {(1, "")}:
            await client.next()

    assert client.rows[1, ""] == {}
    assert client.ended == {}


async def test_the_places_of_a_channel_resume(edge: RunningEdge, alice: AsyncClient) -> None:
    channel = await channel_of(alice, board=MARKETS)
    async with stream_client(edge) as client:
        await client.begin({"id": 1, "channel": channel})
        below = [{"path": ["board"], "token": client.tokens[1, "board"]}]
    put_market(edge, "m1", "k3")
    async with stream_client(edge) as client:
        await client.begin({"id": 1, "channel": channel, "token": "x", "below": below})

    assert client.rows[1, "board"].keys() == {"k3"}
    [watching] = [frame["watching"] for frame in client.frames if frame.get("path") and "watching" in frame]
    assert watching["resumed"] is True


async def test_a_watch_that_its_consumer_may_not_have_ends_alone(edge: RunningEdge, alice: AsyncClient) -> None:
    channel = await channel_of(alice, board=MARKETS, bets={"store": "bets-by-customer", "group": "customer-0001"})
    edge.query.define(STORES.replace("{field: match_id, group: true}", "staff"))
    async with stream_client(edge) as client:
        for watch_id in count(1):
            await client.say(unwatch=[watch_id - 1] * (watch_id > 1), watch=[{"id": watch_id, "channel": channel}])
            await client.until_current(watch_id)
            if "unknown_store" in [frame.get("ended", {}).get("code") for frame in client.frames]:
                break

    ended = next(frame for frame in client.frames if frame.get("ended", {}).get("code") == "unknown_store")
    assert ended["path"] == ["bets"]
    assert client.rows[ended["id"], "board"].keys() == {"k1"}


async def test_a_watch_of_a_store_that_goes_and_returns_begins_anew(edge: RunningEdge, alice: AsyncClient) -> None:
    channel = await channel_of(alice, board=MARKETS)
    async with stream_client(edge) as client:
        await client.begin({"id": 1, "channel": channel})
        edge.query.define("".join(line for line in STORES.splitlines(True) if "odds-by-match" not in line))
        while client.frames[-1].get("ended", {}).get("code") != "unknown_store":
            await client.next()
        edge.query.define(STORES)
        put_market(edge, "m1", "k3")
        async with asyncio.timeout(scaled(10)):
            while (1, "board") not in client.tokens:
                await client.next()

    assert client.rows[1, "board"].keys() == {"k1", "k3"}


async def test_a_channel_that_is_deleted_ends_its_watch(edge: RunningEdge, alice: AsyncClient) -> None:
    channel = await channel_of(alice, board=MARKETS)
    async with stream_client(edge) as client:
        await client.begin({"id": 1, "channel": channel})
        await alice.delete(f"/v1/channels/{channel}")
        while not client.ended:
            await client.next()

    assert client.ended[1]["code"] == "channel_ended"


@pytest.mark.parametrize("channel", ["q1", "A" * 60_000, f"{'A' * 21}\0"])
async def test_what_cannot_be_a_channel_is_unknown_and_not_asked_for(channel: str) -> None:
    async with RunningEdge() as edge, stream_client(edge) as client:
        await client.say(watch=[{"id": 1, "channel": channel}])
        await client.next()

    assert client.ended[1]["code"] == "unknown_channel"
    assert edge.query.calls["BatchGetStates"] == 0


@pytest.mark.parametrize("consumer", ["customer-0002", "customer-0001"])
async def test_a_channel_of_somebody_else_is_as_unknown_as_one_that_never_was(
    edge: RunningEdge, alice: AsyncClient, consumer: str
) -> None:
    channel = await channel_of(alice) if consumer == "customer-0002" else "A" * 22
    async with stream_client(edge, consumer=consumer) as client:
        await client.say(watch=[{"id": 1, "channel": channel}])
        await client.next()

    assert client.ended[1]["code"] == "unknown_channel"


async def test_a_watch_that_is_put_again_begins_anew_also_on_a_socket_that_has_resumed_it(
    edge: RunningEdge, alice: AsyncClient
) -> None:
    channel = await channel_of(alice, board=MARKETS)
    async with stream_client(edge) as client:
        await client.begin({"id": 1, "channel": channel})
        below = [{"path": ["board"], "token": client.tokens[1, "board"]}]
    async with stream_client(edge) as client:
        await client.begin({"id": 1, "channel": channel, "below": below})
        await put(alice, channel, "board", {**MARKETS, "interval_ms": 100})
        while not any("ended" in frame for frame in client.frames):
            await client.next()
        while (1, "board") not in client.tokens:
            await client.next()

    assert client.rows[1, "board"].keys() == {"k1"}
