"""For the edge's own tests: matches and their markets, before a real edge."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

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


@asynccontextmanager
async def odds_edge(**settings: Any) -> AsyncIterator[RunningEdge]:
    """Yields an edge that serves the stores above."""
    async with RunningEdge(stores=STORES, **settings) as edge:
        yield edge


def match_key(match_id: str) -> StoreKey:
    """Returns a football match, in the order of the ids."""
    return StoreKey("matches-by-sport", "football", match_id, match_id)


def market_key(match_id: str, market_id: str) -> StoreKey:
    """Returns a market of a match."""
    return StoreKey("odds-by-match", match_id, market_id, market_id)


def put_match(edge: RunningEdge, match_id: str, home: str = "", of: str | None = None) -> None:
    """Writes a match; `of` is the group of its markets, by default its own id."""
    edge.query.put(match_key(match_id), Match(match_id=match_id if of is None else of, home=home))


def put_market(edge: RunningEdge, match_id: str, market_id: str, name: str = "") -> None:
    """Writes a market of a match."""
    edge.query.put(market_key(match_id, market_id), Market(market_id=market_id, match_id=match_id, name=name))
