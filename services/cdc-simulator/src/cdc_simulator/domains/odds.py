"""The bookmaker: matches, and the markets on which they can be bet."""

from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from random import Random
from typing import NamedTuple

from cdc_simulator.domain import MINUTE_US, DatabaseParameters, Domain, Mutation, Rows, StepContext
from cdc_simulator.row_life_cycle import RowLifeCycle, Step, delete, random_row, take_step
from cdc_simulator.source_table import SourceTable
from statecast.odds.v1.market_pb2 import MarketChange
from statecast.odds.v1.match_pb2 import MatchChange

SPORTS = ("football", "handball", "ice hockey")
SIDES = ("Aberdeen", "Bologna", "Cork", "Dijon", "Espoo", "Faro", "Gdansk", "Haifa", "Izmir", "Jena", "Kosice", "Lund")
MAX_START_MINUTES = 7 * 24 * 60
MARKET_OUTCOMES = (
    ("match winner", ("home", "draw", "away")),
    ("winner at half-time", ("home", "draw", "away")),
    ("first goal", ("home", "nobody", "away")),
    ("goals", ("over", "under")),
    ("goals of the home side", ("over", "under")),
    ("goals of the visiting side", ("over", "under")),
    ("both score", ("yes", "no")),
    ("extra time", ("yes", "no")),
)
"""The markets that a match can have, with the names of their outcomes; a market's index is its place here."""
MAX_MARKETS = len(MARKET_OUTCOMES)
MIN_ODDS, MAX_ODDS = 1010, 20_000


class Status(StrEnum):
    """The status of a match; the values stand in the table."""

    SCHEDULED = "scheduled"
    ABOUT_TO_START = "about to start"
    IN_PLAY = "in play"
    ENDED = "ended"
    CANCELLED = "cancelled"


class MatchRow(NamedTuple):
    """One match. Times are microseconds since 1970 UTC; `number` is the primary key."""

    number: int
    sport: str
    home: str
    away: str
    status: Status
    starts_at_us: int

    @property
    def match_id(self) -> str:
        return f"match-{self.number:06d}"


class Outcome(NamedTuple):
    """A possible result of a market; the odds pay that many thousandths of the stake."""

    name: str
    odds_thousandths: int


class MarketRow(NamedTuple):
    """One market. Times are microseconds since 1970 UTC; `number`, the primary key, says which one of which match."""

    number: int
    name: str
    outcomes: tuple[Outcome, ...]
    suspended: bool
    updated_at_us: int

    @property
    def match_number(self) -> int:
        return self.number // MAX_MARKETS

    @property
    def match_id(self) -> str:
        return f"match-{self.match_number:06d}"

    @property
    def market_id(self) -> str:
        return f"market-{self.match_number:06d}-{self.number % MAX_MARKETS}"


MATCHES = SourceTable(
    "matches", MatchRow, MatchChange, virtual={"match_id": "printf('match-%06d', number)"}, checks=("away <> home",)
)
MARKETS = SourceTable(
    "markets",
    MarketRow,
    MarketChange,
    virtual={
        "market_id": f"printf('market-%06d-%d', number / {MAX_MARKETS}, number % {MAX_MARKETS})",
        "match_id": f"printf('match-%06d', number / {MAX_MARKETS})",
    },
)


def create_match(number: int, context: StepContext) -> MatchRow:
    home, away = context.random.sample(SIDES, 2)
    return MatchRow(number, context.random.choice(SPORTS), home, away, Status.SCHEDULED, _start_us(context))


def _set_status(status: Status) -> Callable[[MatchRow, StepContext], MatchRow]:
    return lambda row, _context: row._replace(status=status)


def _kick_off(row: MatchRow, context: StepContext) -> MatchRow:
    return row._replace(status=Status.IN_PLAY, starts_at_us=context.now_us)


def _reschedule(row: MatchRow, context: StepContext) -> MatchRow:
    starts_at_us = _start_us(context)
    return row._replace(starts_at_us=starts_at_us + MINUTE_US * (starts_at_us == row.starts_at_us))


def _delay(row: MatchRow, context: StepContext) -> MatchRow:
    return row._replace(starts_at_us=row.starts_at_us + MINUTE_US * (5 + context.random.randrange(25)))


def _start_us(context: StepContext) -> int:
    return (context.now_us // MINUTE_US + 1 + context.random.randrange(MAX_START_MINUTES)) * MINUTE_US


_cancel = _set_status(Status.CANCELLED)
MATCH_STEPS = {
    Status.SCHEDULED: (Step(65, _set_status(Status.ABOUT_TO_START)), Step(25, _reschedule), Step(10, _cancel)),
    Status.ABOUT_TO_START: (Step(70, _kick_off), Step(25, _delay), Step(5, _cancel)),
    Status.IN_PLAY: (Step(95, _set_status(Status.ENDED)), Step(5, _cancel)),
}
MATCH_LIFE_CYCLE = RowLifeCycle("matches", create_match, MATCH_STEPS, creation_share=0.17)


def create_market(match_number: int, index: int, context: StepContext) -> MarketRow:
    """Returns a new market of a match: the one with that index, from 0 to MAX_MARKETS - 1."""
    name, outcome_names = MARKET_OUTCOMES[index]
    outcomes = tuple(Outcome(outcome, context.random.randrange(MIN_ODDS, MAX_ODDS, 10)) for outcome in outcome_names)
    return MarketRow(match_number * MAX_MARKETS + index, name, outcomes, False, context.now_us)


def advance_market(row: MarketRow, match: MatchRow | None, context: StepContext) -> MarketRow | None:
    """Returns the market after one legal step: None when it ends, at the latest after its match.

    A match that is finished has its markets suspended, then deleted.
    """
    if match is None:
        return None
    if MATCH_LIFE_CYCLE.is_finished(match):
        return None if row.suspended else _toggle_suspension(row, context)
    return take_step(row, SUSPENDED_STEPS if row.suspended else OPEN_STEPS, context)


def _move_odds(row: MarketRow, context: StepContext) -> MarketRow:
    outcomes = tuple(outcome._replace(odds_thousandths=_moved_odds(outcome, context)) for outcome in row.outcomes)
    return row._replace(outcomes=outcomes, updated_at_us=context.now_us)


def _moved_odds(outcome: Outcome, context: StepContext) -> int:
    """Moves the odds by a tenth up or down at most, and never returns the same."""
    change = 10 * (1 + context.random.randrange(max(1, outcome.odds_thousandths // 100)))
    lower, higher = outcome.odds_thousandths - change, outcome.odds_thousandths + change
    return higher if lower < MIN_ODDS or (higher <= MAX_ODDS and context.random.random() < 0.5) else lower


def _toggle_suspension(row: MarketRow, context: StepContext) -> MarketRow:
    return row._replace(suspended=not row.suspended, updated_at_us=context.now_us)


OPEN_STEPS = (Step(85, _move_odds), Step(13, _toggle_suspension), Step(2, delete))
SUSPENDED_STEPS = (Step(30, _move_odds), Step(65, _toggle_suspension), Step(5, delete))

MATCH_SHARE = 0.15
NEW_MARKET_SHARE = 0.15


def initial_rows(parameters: DatabaseParameters, now_us: int) -> Iterator[Mutation]:
    """Yields the matches, and half of the markets of those that are not finished."""
    matches = list(MATCH_LIFE_CYCLE.initial_rows(parameters, now_us))
    yield from matches
    for match in [insert.after for insert in matches if not MATCH_LIFE_CYCLE.is_finished(insert.after)]:
        random = Random(f"{parameters.seed}:markets:{match.number}")  # noqa: S311  a simulation, no secret
        for index in sorted(random.sample(range(MAX_MARKETS), MAX_MARKETS // 2)):
            market = create_market(match.number, index, StepContext(random, parameters, now_us))
            yield Mutation(MARKETS.name, None, market)


def next_mutation(tables: Mapping[str, Rows], context: StepContext) -> Mutation:
    """Returns a mutation of a match or of a market, or a new market of a match that is not finished."""
    share = context.random.random()
    if share < MATCH_SHARE:
        return MATCH_LIFE_CYCLE.next_mutation(tables, context)
    new_market = _new_market(tables, context) if share < MATCH_SHARE + NEW_MARKET_SHARE else None
    return new_market or _market_mutation(tables, context) or MATCH_LIFE_CYCLE.next_mutation(tables, context)


def _new_market(tables: Mapping[str, Rows], context: StepContext) -> Mutation | None:
    """Returns a market that the match does not have now, under the id that it had if it was withdrawn before."""
    match = random_row(tables[MATCHES.name], context.random)
    if match is None:
        return None
    index = context.random.randrange(MAX_MARKETS)
    if MATCH_LIFE_CYCLE.is_finished(match) or tables[MARKETS.name].find(match.number * MAX_MARKETS + index):
        return None
    return Mutation(MARKETS.name, None, create_market(match.number, index, context))


def _market_mutation(tables: Mapping[str, Rows], context: StepContext) -> Mutation | None:
    market = random_row(tables[MARKETS.name], context.random)
    if market is None:
        return None
    match = tables[MATCHES.name].find(market.match_number)
    return Mutation(MARKETS.name, market, advance_market(market, match, context))


DOMAIN = Domain("odds", (MATCHES, MARKETS), initial_rows, next_mutation)
