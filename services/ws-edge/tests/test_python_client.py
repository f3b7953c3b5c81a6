"""The Python client before a real edge: rows, deltas, queries, and resumptions through cuts and at another edge."""

import asyncio
from collections.abc import AsyncIterator, Callable
from random import Random
from typing import Any

import pytest

from statecast_client.push import PushClient, PushRefusedError, Step, Watch
from testkit.relay import Relay
from testkit.waiting import scaled
from testkit.ws_edge.edge import RunningEdge
from testkit.ws_edge.odds import market_key, odds_edge, put_market, put_match

ODDS, MATCHES = "odds-by-match", "matches-by-sport"
BOARD = [Step(store=ODDS, group_field="match_id")]


@pytest.fixture
async def edge() -> AsyncIterator[RunningEdge]:
    async with odds_edge() as running:
        yield running


def client_of(edge: RunningEdge, address: str | None = None) -> PushClient:
    return PushClient(f"ws://{address or edge.address}/v1/stream", credentials=edge.headers())


def names(watch: Watch, *path: str) -> dict[str, Any]:
    """The names of markets, or of matches, by their keys."""
    place = watch.places.get(path)
    return {} if place is None else {key: row.value.get("name", "") for key, row in place.rows.items()}


async def read_until(watch: Watch, condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(scaled(30)):
        while not condition():
            await anext(watch)


async def test_a_range_brings_its_rows_and_every_change(edge: RunningEdge) -> None:
    put_market(edge, "m1", "k1", "first")
    async with client_of(edge) as client:
        watch = client.watch(ODDS, "m1", interval_ms=0)
        await read_until(watch, lambda: watch.current)
        assert (names(watch), watch.resumed) == ({"k1": "first"}, False)

        put_market(edge, "m1", "k1", "second")
        put_market(edge, "m1", "k2", "new")
        await read_until(watch, lambda: names(watch) == {"k1": "second", "k2": "new"})
        assert watch.rows["k1"].value["market_id"] == "k1"

        edge.query.delete(market_key("m1", "k1"))
        await read_until(watch, lambda: names(watch) == {"k2": "new"})


async def test_what_is_saved_resumes_at_a_new_client_and_another_edge(edge: RunningEdge) -> None:
    put_market(edge, "m1", "k1", "first")
    put_market(edge, "m1", "k2", "second")
    async with client_of(edge) as client:
        watch = client.watch(ODDS, "m1", interval_ms=0)
        await read_until(watch, lambda: watch.current)
        saved = watch.saved()
    put_market(edge, "m1", "k1", "newer")
    async with RunningEdge(beside=edge) as other, client_of(other) as client:
        watch = client.watch(ODDS, "m1", interval_ms=0, resume=saved)
        assert names(watch) == {"k1": "first", "k2": "second"}
        change = await anext(watch)

        assert watch.resumed is True
        assert list(change.rows) == ["k1"]
        assert names(watch) == {"k1": "newer", "k2": "second"}


async def test_a_watch_of_nothing_known_is_refused(edge: RunningEdge) -> None:
    async with client_of(edge) as client:
        wrong = client.watch("odds-by-mach", "m1")
        with pytest.raises(PushRefusedError) as refusal:
            await anext(wrong)

    assert refusal.value.code == "unknown_store"


@pytest.mark.parametrize("seed", range(4))
async def test_through_random_changes_and_cuts_it_ends_with_the_rows_of_the_store(edge: RunningEdge, seed: int) -> None:
    chance = Random(seed)
    expected: dict[str, dict[str, str]] = {match: {} for match in ("m1", "m2", "m3")}
    async with Relay(f"{edge.address}") as relay, client_of(edge, relay.address) as client:
        board = client.watch(MATCHES, "football", steps=BOARD, interval_ms=0)
        for match in expected:
            put_match(edge, match)
        for turn in range(120):
            change_market(edge, expected, chance, turn)
            if chance.random() < 0.08:
                await relay.cut()
            if chance.random() < 0.3:
                await asyncio.sleep(chance.random() / 50)
        await read_until(board, lambda: {match: names(board, match) for match in expected} == expected)


def change_market(edge: RunningEdge, expected: dict[str, dict[str, str]], chance: Random, turn: int) -> None:
    match, market = chance.choice(list(expected)), chance.choice("abcd")
    if market in expected[match] and chance.random() < 0.3:
        edge.query.delete(market_key(match, market))
        del expected[match][market]
        return
    put_market(edge, match, market, f"{turn}")
    expected[match][market] = f"{turn}"
