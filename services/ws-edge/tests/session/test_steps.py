"""Places below the rows of a watch: each costs, comes after its row, and ends with it."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from google.protobuf.json_format import ParseDict
from google.protobuf.struct_pb2 import Value

from testkit.ws_edge.edge import RunningEdge, until
from testkit.ws_edge.odds import odds_edge, put_match
from testkit.ws_edge.stream import StreamClient, stream_client
from ws_edge.model.states import StoreKey

PLACES = 30
STEPS = [{"store": "odds-by-match", "group_field": "match_id"}]
BOARD: dict[str, Any] = {"store": "matches-by-sport", "group": "football", "steps": STEPS, "interval_ms": 0}
STORES = """stores:
  - {name: boards, message: json, keeps: members, readers: everyone}
  - {name: texts, message: json, keeps: one, readers: everyone}
"""
TEXTS: dict[str, Any] = {
    "store": "boards",
    "group": "g",
    "steps": [{"store": "texts", "group_field": "text"}],
    "interval_ms": 0,
}
LIMIT = 1_000_000
"""The largest frame."""


@pytest.fixture
async def edge() -> AsyncIterator[RunningEdge]:
    async with RunningEdge(stores=STORES) as running:
        for name in "ab":
            put(running, StoreKey("texts", name), name)
        yield running


def put(edge: RunningEdge, key: StoreKey, text: str, size: int = 1) -> None:
    edge.query.put(key, ParseDict({"text": text, "more": "x" * size}, Value()))


def member(name: str) -> StoreKey:
    return StoreKey("boards", "g", name, name)


async def until_part(client: StreamClient, part: str, *path: str) -> Any:
    """Receives until a frame of the path has the part, and returns that."""
    frame = await client.next()
    while frame.get("path") != list(path) or part not in frame:
        frame = await client.next()
    return frame[part]


@pytest.mark.parametrize("how", ["unwatch", "too many rows", "a new socket"])
async def test_places_below_a_watch_that_ends_cost_as_much_as_watches(how: str) -> None:
    limits = {"consumer_frames_per_s": 10, "frames_burst_s": 1}
    async with odds_edge(**limits, max_places=PLACES - (how == "too many rows")) as edge:
        for number in range(PLACES):
            put_match(edge, f"m{number}")
        async with stream_client(edge) as client:
            await client.say(watch=[{"id": 1, **BOARD}])
            while not client.current | client.ended.keys():
                await client.next()
            await client.say(unwatch=[1])
            if how != "a new socket":
                await client.say(ping={})
                while "ping" not in client.frames[-1]:
                    await client.next()
        async with stream_client(edge) as client:
            await client.say(ping={})
            await client.next()

        assert edge.throttled_s > 0.3


async def test_a_row_comes_before_the_places_below_it(edge: RunningEdge) -> None:
    put(edge, member("a"), "a", 60_000)
    put(edge, member("b"), "b", 940_000)
    async with stream_client(edge) as warm:
        keys = [{"id": n, "store": "texts", "group": name, "interval_ms": 0} for n, name in enumerate("ab", 1)]
        await warm.say(watch=keys)
        await warm.until_current(1)
        await warm.until_current(2)
        async with stream_client(edge) as client:
            await client.begin({"id": 1, **TEXTS})

    held = set[str]()
    for frame in client.frames:
        held.update(row.get("key") or row["row"]["text"] for row in frame.get("rows", ()) if "path" not in frame)
        assert set(frame.get("path", ())) <= held
    assert client.rows.keys() == {(1, ""), (1, "a"), (1, "b")}


@pytest.mark.parametrize("options", [{}, {"delta": True}])
async def test_a_row_that_names_another_group_moves_the_place_below_whatever_fields_are_sent(
    edge: RunningEdge, options: dict[str, Any]
) -> None:
    put(edge, member("a"), "a")
    async with stream_client(edge) as client:
        await client.begin({"id": 1, **TEXTS, "fields": ["more"], **options})
        put(edge, member("a"), "b")
        await until_part(client, "watching", "a")

    assert client.rows[1, ""] == {"a": {"more": "x"}}
    assert client.rows[1, "a"][""]["text"] == "b"


async def test_a_row_that_grows_too_large_ends_the_places_below_it(edge: RunningEdge) -> None:
    put(edge, member("a"), "a")
    async with stream_client(edge) as client:
        await client.begin({"id": 1, **TEXTS})
        assert (1, "a") in client.rows
        put(edge, member("a"), "a", LIMIT)
        ended = await until_part(client, "ended", "a")
        await until(lambda: edge.parts.hub.subscriptions == 1)
        put(edge, member("a"), "a")
        await until_part(client, "watching", "a")

    assert ended == {}
    assert client.rows[1, "a"][""]["text"] == "a"


async def test_a_row_that_was_too_large_brings_no_place_to_a_client_that_resumes(edge: RunningEdge) -> None:
    put(edge, member("a"), "a", LIMIT)
    async with stream_client(edge) as client:
        await client.begin({"id": 1, **TEXTS})
        token = client.tokens[1, ""]
    async with stream_client(edge) as client:
        await client.begin({"id": 1, **TEXTS, "token": token})

        assert client.frames[-1]["watching"]["resumed"]
        assert edge.parts.hub.subscriptions == 1
        put(edge, member("a"), "a")
        await until_part(client, "rows", "a")


async def test_a_key_that_cannot_be_read_ends_the_places_below_it(edge: RunningEdge) -> None:
    put(edge, StoreKey("texts", "first"), "a")
    steps = [{"store": "texts", "group_field": "text"}]
    async with stream_client(edge) as client:
        await client.begin({"id": 1, "store": "texts", "group": "first", "steps": steps})
        assert edge.parts.hub.subscriptions == 2
        edge.query.too_large = frozenset({StoreKey("texts", "first")})
        put(edge, StoreKey("texts", "first"), "a", 2)
        ended = await until_part(client, "ended", "")

        assert ended == {}
        await until(lambda: edge.parts.hub.subscriptions == 1)


@pytest.mark.parametrize("bounds", [{"reverse": True}, {"sort_from": "a"}])
@pytest.mark.parametrize("where", ["watch", "step"])
async def test_bounds_of_many_rows_are_refused_where_there_is_one(
    edge: RunningEdge, where: str, bounds: dict[str, Any]
) -> None:
    watch = {"id": 1, "store": "texts", "group": "a"} | bounds
    if where == "step":
        watch = {"id": 1, **TEXTS, "steps": [TEXTS["steps"][0] | bounds]}
    async with stream_client(edge) as client:
        await client.say(watch=[watch])
        while not client.ended:
            await client.next()

    assert client.ended[1]["code"] == "malformed_watch"
    assert f"texts has one row per group: leave {next(iter(bounds))} out" in client.ended[1]["message"]
