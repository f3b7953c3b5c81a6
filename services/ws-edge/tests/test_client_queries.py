"""Both clients watch a query in steps at a real edge: rows come and go, and a cut connection costs nothing."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import pytest

from statecast.push.v1.query_pb2 import QueryStep
from statecast.push.v1.range_pb2 import MemberChange, Range, RangeChanged, RangeWatched
from statecast_client.push import PushClient, QuerySubscription, name_of_row
from testkit.push_clients import browser_client
from testkit.relay import Relay
from testkit.ws_edge.edge import RunningEdge, until
from testkit.ws_edge.odds import FIRST, MARKETS, PRICES, match_key, odds_edge, put_market, put_match

Rows = set[tuple[str, ...]]
"""The paths of all rows that a client holds."""
Holding = Callable[[], Any]

WATCH = """([first, ...steps]) => {
    window.rows = new Map();
    window.recovered = [];
    const drop = (path, least) => {
        for (const [name, row] of window.rows)
            if (row.length >= least && path.every((each, depth) => each === row[depth])) window.rows.delete(name);
    };
    window.live.watchQuery("q", first, steps, {
        intervalMs: 0,
        onRange: ({ path, recovered }) => {
            window.recovered.push([recovered, ...path].join(" "));
            if (!recovered) drop(path, path.length + 1);
        },
        onChange: ({ path, change, key }) => {
            const row = [...path, key.member || key.group];
            if (change === "left") drop(row, row.length);
            else window.rows.set(row.join("/"), row);
        },
    });
}"""


async def keep(query: QuerySubscription, rows: Rows, recovered: list[str]) -> None:
    async for path, event in query:
        row = (*path, name_of_row(event)) if isinstance(event, RangeChanged) else path
        if isinstance(event, RangeChanged) and event.change != MemberChange.MEMBER_CHANGE_LEFT:
            rows.add(row)
            continue
        if isinstance(event, RangeWatched):
            recovered.append(" ".join(("false", *path)))
        rows -= {each for each in rows if each[: len(row)] == row and each != path}


@asynccontextmanager
async def python_rows(relay: Relay, edge: RunningEdge) -> AsyncIterator[Holding]:
    rows: Rows = set()
    recovered: list[str] = []
    async with PushClient(f"ws://{relay.address}/v1/stream", credentials=edge.headers()) as client:
        steps = QueryStep(**MARKETS), QueryStep(**PRICES)
        query = await client.watch_query("q", Range(**FIRST), *steps, interval_ms=0)
        reader = asyncio.create_task(keep(query, rows, recovered))

        async def holding() -> Any:
            return {"/".join(each) for each in rows}, recovered.count("false")

        yield holding
    await reader


@asynccontextmanager
async def browser_rows(relay: Relay, edge: RunningEdge) -> AsyncIterator[Holding]:
    async with browser_client(relay.address, edge.headers()) as client:
        page = client._page
        await page.evaluate(WATCH, [FIRST, MARKETS, PRICES])

        async def holding() -> Any:
            begun = await page.evaluate("() => window.recovered.filter((each) => each === 'false').length")
            return set(await page.evaluate("() => [...window.rows.keys()]")), begun

        yield holding


async def wait_for(holding: Holding, *rows: str) -> None:
    async with asyncio.timeout(60):
        while (await holding())[0] != set(rows):  # noqa: ASYNC110  a client cannot set an event
            await asyncio.sleep(0.02)


@pytest.mark.parametrize("watching", [python_rows, browser_rows], ids=["python", "browser"])
async def test_a_client_holds_the_rows_of_all_steps(
    watching: Callable[[Relay, RunningEdge], AbstractAsyncContextManager[Holding]],
) -> None:
    async with odds_edge() as edge, Relay(edge.address) as relay:
        put_match(edge, "m1")
        put_market(edge, "m1", "a")
        async with watching(relay, edge) as holding:
            await wait_for(holding, "m1", "m1/a")
            put_match(edge, "m2")
            put_market(edge, "m2", "b")
            await wait_for(holding, "m1", "m1/a", "m2", "m2/b")
            edge.query.delete(match_key("m1"))
            await wait_for(holding, "m2", "m2/b")

            await relay.cut()
            put_match(edge, "m3")
            put_market(edge, "m2", "c")
            put_market(edge, "m3", "d")
            await wait_for(holding, "m2", "m2/b", "m2/c", "m3", "m3/d")
            assert (await holding())[1] == 1, "the first range was resumed"

    await until(lambda: edge.parts.hub.subscriptions == 0)
