"""What the topics of the odds' pipelines must hold, computed from the change log alone."""

from collections.abc import Iterable

from drivers.model_changes import rows_after
from drivers.model_keys import Keyed, member_key, time_sort
from statecast.odds.v1.market_pb2 import MarketChange
from statecast.odds.v1.match_pb2 import MatchChange, MatchStatus


def odds_by_match(changes: Iterable[MarketChange]) -> Keyed:
    """The markets of each match, by name."""
    return {member_key(row.match_id, row.name, row.market_id): row for row in rows_after(changes)}


def matches_about_to_start(changes: Iterable[MatchChange]) -> Keyed:
    """The matches about to start, under the name of that status, by their start."""
    group = "MATCH_STATUS_ABOUT_TO_START"
    return {
        member_key(group, time_sort(row.starts_at), row.match_id): row
        for row in rows_after(changes)
        if row.status == MatchStatus.Value(group)
    }
