"""Watches of long groups, which together are more than the query service takes at once, hold up nobody else's."""

import json

import pytest

from statecast.odds.v1.market_pb2 import Market
from testkit.ws_edge.edge import RunningEdge
from testkit.ws_edge.stream import stream_client
from ws_edge.model.states import StoreKey

LONG = "\N{GRINNING FACE}" * 1020
"""In UTF-8 it is as long as a part of a key may be."""


@pytest.mark.parametrize("interval_ms", [0, 20])
async def test_somebody_elses_long_groups_hold_up_no_watch(interval_ms: int) -> None:
    async with (
        RunningEdge(consumer_rows=100_000) as edge,
        stream_client(edge) as hostile,
        stream_client(edge, consumer="customer-0002") as phone,
    ):
        edge.query.put(StoreKey("odds-by-match", "m1", "a", "k1"), Market(market_id="k1", match_id="m1"))
        asked = {"store": "odds-by-match", "interval_ms": interval_ms, "limit": 1}
        for first in range(1, 400, 4):
            ids = range(first, first + 4)
            ranges = [{"id": each, "group": f"{each:03}{LONG}", "sort_from": LONG, "sort_to": LONG} for each in ids]
            await hostile.socket.send(json.dumps({"watch": [each | asked for each in ranges]}, ensure_ascii=False))
        await hostile.until_current(400)
        await phone.begin({"id": 1, "group": "m1", **asked})

    assert [*phone.rows[1, ""]] == ["k1"]
