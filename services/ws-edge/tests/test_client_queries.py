"""Both clients watch a query in steps at a real edge: rows come and go, and a cut connection costs nothing."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import pytest

from statecast.odds.v1.market_pb2 import Market
from statecast_client.push import PushClient, Step
from testkit.push_clients import browser_client
from testkit.relay import Relay
from testkit.ws_edge.edge import RunningEdge, until
from testkit.ws_edge.odds import FIRST, MARKETS, PRICES, match_key, odds_edge, put_market, put_match
from ws_edge.model.states import StoreKey

Holding = Callable[[], Awaitable[set[str]]]
"""Returns the rows that a client holds, each as its path and its key."""

WATCH = "(what) => { window.board = window.live.watch(what); }"
HELD = """() => window.board.places.list().flatMap(
    ({ path, rows }) => [...rows.keys()].map((key) => [...path, key].join("/")))"""


@asynccontextmanager
async def python_rows(relay: Relay, edge: RunningEdge) -> AsyncIterator[Holding]:
    async with PushClient(f"ws://{relay.address}/v1/stream", credentials=edge.headers()) as client:
        board = client.watch(FIRST["store"], FIRST["group"], steps=[Step(**MARKETS), Step(**PRICES)], interval_ms=0)

        async def holding() -> set[str]:
            return {"/".join((*path, key)) for path, place in board.places.items() for key in place.rows}

        yield holding


@asynccontextmanager
async def browser_rows(relay: Relay, edge: RunningEdge) -> AsyncIterator[Holding]:
    async with browser_client(relay.address, edge.headers()) as client:
        await client.page.evaluate(WATCH, {**FIRST, "steps": [MARKETS, PRICES], "interval_ms": 0})

        async def holding() -> set[str]:
            return set(await client.page.evaluate(HELD))

        yield holding


async def wait_for(holding: Holding, *rows: str) -> None:
    async with asyncio.timeout(60):
        while await holding() != set(rows):  # noqa: ASYNC110  a client cannot set an event
            await asyncio.sleep(0.02)


@pytest.mark.parametrize("watching", [python_rows, browser_rows], ids=["python", "browser"])
async def test_a_client_holds_the_rows_of_all_steps(
    watching: Callable[[Relay, RunningEdge], AbstractAsyncContextManager[Holding]],
) -> None:
    async with odds_edge() as edge, Relay(edge.address) as relay:
        put_match(edge, "m1")
        put_market(edge, "m1", "a")
        edge.query.put(StoreKey("market-by-key", "a"), Market(market_id="a"))
        async with watching(relay, edge) as holding:
            await wait_for(holding, "m1", "m1/a", "m1/a/")
            put_match(edge, "m2")
            put_market(edge, "m2", "b")
            await wait_for(holding, "m1", "m1/a", "m1/a/", "m2", "m2/b")
            edge.query.delete(match_key("m1"))
            await wait_for(holding, "m2", "m2/b")

            await relay.cut()
            put_match(edge, "m3")
            put_market(edge, "m2", "c")
            put_market(edge, "m3", "d")
            await wait_for(holding, "m2", "m2/b", "m2/c", "m3", "m3/d")

    await until(lambda: edge.parts.hub.subscriptions == 0)
