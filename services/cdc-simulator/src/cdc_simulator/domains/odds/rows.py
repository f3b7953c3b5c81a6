"""The rows of the tables `matches` and `markets`."""

from enum import StrEnum
from typing import NamedTuple

MOST_MARKETS = 8
"""The most markets that a match has at a time; a market's number says which one of which match it is."""


class Status(StrEnum):
    """The station of a match in its life; the values stand in the table."""

    SCHEDULED = "scheduled"
    ABOUT_TO_START = "about to start"
    IN_PLAY = "in play"
    ENDED = "ended"
    CANCELLED = "cancelled"


def match_id(number: int) -> str:
    """Returns the id of a match as the rest of the world knows it, for example `match-000042`."""
    return f"match-{number:06d}"


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
        """As the rest of the world knows it."""
        return match_id(self.number)


class Outcome(NamedTuple):
    """What a market can end with; the odds pay so many thousandths of the stake."""

    name: str
    odds_thousandths: int


class MarketRow(NamedTuple):
    """One market. Times are microseconds since 1970 UTC; `number` is the primary key."""

    number: int
    name: str
    outcomes: tuple[Outcome, ...]
    suspended: bool
    updated_at_us: int

    @property
    def match_number(self) -> int:
        """The primary key of its match."""
        return self.number // MOST_MARKETS

    @property
    def market_id(self) -> str:
        """As the rest of the world knows it, for example `market-000042-3`."""
        return f"market-{self.match_number:06d}-{self.number % MOST_MARKETS}"
