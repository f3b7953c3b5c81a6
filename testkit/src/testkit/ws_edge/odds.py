"""For the edge's own tests: matches, their markets and the events of each, before a real edge."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from websockets.asyncio.client import ClientConnection

from statecast.odds.v1.market_pb2 import Market
from statecast.odds.v1.match_pb2 import Match
from testkit.ws_edge.edge import RunningEdge
from ws_edge.model.states import StoreKey

STORES = """
stores:
  - {name: matches-by-sport, message: statecast.odds.v1.Match, keeps: members, readers: everyone}
  - {name: odds-by-match, message: statecast.odds.v1.Market, keeps: members, readers: everyone}
  - {name: market-by-key, message: statecast.odds.v1.Market, keeps: one, readers: everyone}
  - {name: bets-by-customer, message: statecast.odds.v1.Market, keeps: members, readers: {field: match_id, group: true}}
  - {name: hidden-by-match, message: statecast.odds.v1.Market, keeps: one, readers: {field: name}}
  - {name: staff-odds, message: statecast.odds.v1.Market, keeps: members, readers: staff}
"""
FIRST: dict[str, Any] = {"store": "matches-by-sport", "group": "football"}
MARKETS: dict[str, Any] = {"store": "odds-by-match", "group_field": "match_id"}
PRICES: dict[str, Any] = {"store": "market-by-key", "group_field": "market_id"}

Event = tuple[str, str, str]
"""What has happened, at which path, and to which row."""


@asynccontextmanager
async def odds_edge(**settings: Any) -> AsyncIterator[RunningEdge]:
    """An edge that serves the stores above."""
    intervals = {"min_interval_ms": 20, "default_interval_ms": 20, "tick_ms": 5}
    async with RunningEdge(stores=STORES, **intervals | settings) as edge:
        yield edge


def match_key(match_id: str) -> StoreKey:
    """A football match, in the order of the ids."""
    return StoreKey("matches-by-sport", "football", match_id, match_id)


def market_key(match_id: str, market_id: str) -> StoreKey:
    """A market of a match."""
    return StoreKey("odds-by-match", match_id, market_id, market_id)


def put_match(edge: RunningEdge, match_id: str, home: str = "", of: str | None = None) -> None:
    """Writes a match; `of` is the group of its markets, by default its own id."""
    edge.query.put(match_key(match_id), Match(match_id=match_id if of is None else of, home=home))


def put_market(edge: RunningEdge, match_id: str, market_id: str, name: str = "") -> None:
    """Writes a market of a match."""
    edge.query.put(market_key(match_id, market_id), Market(market_id=market_id, match_id=match_id, name=name))


def board(name: str = "q", interval_ms: int = 0, **first: Any) -> dict[str, Any]:
    """A subscription of a channel: football matches and the markets of each, with more fields of the `first` range."""
    return {"query": {"name": name, "first": FIRST | first, "steps": [MARKETS]}, "interval_ms": interval_ms}


class QueryReader:
    """A socket that watches a query named `q`, and the events that it receives."""

    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket
        self.events: list[Event] = []
        self.frames: list[dict[str, Any]] = []
        self.through: dict[tuple[str, str], dict[str, str]] = {}
        """The last position of each range by its path and group, which a client would resume from."""

    async def watch(
        self, *steps: dict[str, Any], first: dict[str, Any] | None = None, frame_id: str = "1", **more: Any
    ) -> None:
        """Asks for the query."""
        query = {"name": "q", "first": first or FIRST, "steps": steps or (MARKETS,)}
        await self.say(id=frame_id, watch_query={"query": query, "interval_ms": 0} | more)

    async def say(self, **frame: Any) -> None:
        """Sends a frame."""
        await self.socket.send(json.dumps(frame))

    async def next(self) -> dict[str, Any]:
        """Receives a frame, and keeps its contents."""
        frame: dict[str, Any] = json.loads(await self.socket.recv())
        self.frames.append(frame)
        self.events.append(event_of(frame))
        event = frame.get("range_watched") or frame.get("range_changed") or {}
        if "through" in event:
            path = "/".join(frame["query"].get("path", []))
            self.through[path, event["range"]["group"]] = event["through"]
        return frame

    async def until(self, *expected: Event) -> None:
        """Receives frames until all of these have come since the last call, in whatever order."""
        self.events.clear()
        while not set(expected) <= set(self.events):
            await self.next()

    @property
    def after(self) -> list[dict[str, Any]]:
        """The positions to resume from."""
        return [
            {"path": path.split("/") if path else [], "group": group, "through": position}
            for (path, group), position in self.through.items()
        ]


def event_of(frame: dict[str, Any]) -> Event:
    """A frame's event, in three words."""
    path = "/".join(frame.get("query", {}).get("path", []))
    if "range_watched" in frame:
        watched = frame["range_watched"]
        return watched["start"].removeprefix("START_").lower(), path, watched["range"]["group"]
    if "range_changed" in frame:
        change = frame["range_changed"]
        word = change["change"].removeprefix("MEMBER_CHANGE_").lower()
        return word, path, change["key"].get("member") or change["key"]["group"]
    if "range_unwatched" in frame:
        return "unwatched", path, frame["range_unwatched"]["range"]["group"]
    if "error" in frame:
        return "error", path, frame["error"]["code"]
    return next(iter(frame.keys() - {"id"})), path, ""
