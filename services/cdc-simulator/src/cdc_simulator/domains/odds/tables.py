"""The tables `matches` and `markets`: their columns, and their rows as the contract has them."""

from collections.abc import Sequence
from typing import Any

from cdc_simulator.domain import SourceTable
from cdc_simulator.domains.odds import rows
from cdc_simulator.domains.odds.rows import MarketRow, MatchRow, Status, match_id
from cdc_simulator.timestamps import timestamp
from statecast.odds.v1.market_pb2 import Market, MarketChange, Outcome
from statecast.odds.v1.match_pb2 import Match, MatchChange, MatchStatus

MATCHES_DEFINITION = """
CREATE TABLE matches (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    match_id TEXT GENERATED ALWAYS AS (printf('match-%06d', number)) VIRTUAL,
    sport TEXT NOT NULL,
    home TEXT NOT NULL,
    away TEXT NOT NULL CHECK (away <> home),
    status TEXT NOT NULL CHECK (status IN ('scheduled', 'about to start', 'in play', 'ended', 'cancelled')),
    starts_at_us INTEGER NOT NULL
);
"""
MARKETS_DEFINITION = """
CREATE TABLE markets (
    number INTEGER PRIMARY KEY AUTOINCREMENT, -- eight times the match's number, and the place of the question
    market_id TEXT GENERATED ALWAYS AS (printf('market-%06d-%d', number / 8, number % 8)) VIRTUAL,
    match_id TEXT GENERATED ALWAYS AS (printf('match-%06d', number / 8)) VIRTUAL,
    name TEXT NOT NULL,
    outcomes TEXT NOT NULL CHECK (json_array_length(outcomes) > 0), -- [[name, odds_thousandths], ...]
    suspended INTEGER NOT NULL CHECK (suspended IN (0, 1)),
    updated_at_us INTEGER NOT NULL
);
"""
STATUSES = {
    Status.SCHEDULED: MatchStatus.MATCH_STATUS_SCHEDULED,
    Status.ABOUT_TO_START: MatchStatus.MATCH_STATUS_ABOUT_TO_START,
    Status.IN_PLAY: MatchStatus.MATCH_STATUS_IN_PLAY,
    Status.ENDED: MatchStatus.MATCH_STATUS_ENDED,
    Status.CANCELLED: MatchStatus.MATCH_STATUS_CANCELLED,
}


def match(row: MatchRow) -> Match:
    """Returns the row as the contract has it."""
    return Match(
        match_id=row.match_id,
        sport=row.sport,
        home=row.home,
        away=row.away,
        status=STATUSES[row.status],
        starts_at=timestamp(row.starts_at_us),
    )


def market(row: MarketRow) -> Market:
    """Returns the row as the contract has it."""
    return Market(
        market_id=row.market_id,
        match_id=match_id(row.match_number),
        name=row.name,
        outcomes=[Outcome(name=name, odds_thousandths=odds) for name, odds in row.outcomes],
        suspended=row.suspended,
        updated_at=timestamp(row.updated_at_us),
    )


def _match_row(values: Sequence[Any]) -> MatchRow:
    number, sport, home, away, status, starts_at_us = values
    return MatchRow(number, sport, home, away, Status(status), starts_at_us)


def _market_row(values: Sequence[Any]) -> MarketRow:
    number, name, outcomes, suspended, updated_at_us = values
    return MarketRow(number, name, tuple(map(rows.Outcome._make, outcomes)), bool(suspended), updated_at_us)


MATCHES = SourceTable(
    name="matches",
    topic="matches",
    definition=MATCHES_DEFINITION,
    row=MatchRow,
    parse=_match_row,
    row_id=lambda row: row.match_id,
    key=lambda row: row.match_id,
    message=match,
    change=MatchChange,
)
MARKETS = SourceTable(
    name="markets",
    topic="markets",
    definition=MARKETS_DEFINITION,
    row=MarketRow,
    json_fields=frozenset({"outcomes"}),
    parse=_market_row,
    row_id=lambda row: row.market_id,
    key=lambda row: row.market_id,
    message=market,
    change=MarketChange,
)
