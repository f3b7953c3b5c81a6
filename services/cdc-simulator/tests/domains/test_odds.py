"""Matches and markets: their life cycles, their mutations and their messages."""

from collections import Counter
from random import Random

import pytest

from cdc_simulator.domain import DatabaseParameters, StepContext, next_mutation
from cdc_simulator.domains.odds import (
    DOMAIN,
    MARKET_OUTCOMES,
    MARKETS,
    MATCH_LIFE_CYCLE,
    MATCHES,
    MAX_MARKETS,
    MAX_ODDS,
    MIN_ODDS,
    MarketRow,
    MatchRow,
    Outcome,
    Status,
    advance_market,
    create_market,
    create_match,
)
from statecast.odds.v1.market_pb2 import Market
from statecast.odds.v1.match_pb2 import Match, MatchStatus
from testkit.cdc_simulator import memory_tables

NOW_US = 1_724_848_496_123_456
LEGAL = {
    Status.SCHEDULED: {Status.SCHEDULED, Status.ABOUT_TO_START, Status.CANCELLED},
    Status.ABOUT_TO_START: {Status.ABOUT_TO_START, Status.IN_PLAY, Status.CANCELLED},
    Status.IN_PLAY: {Status.ENDED, Status.CANCELLED},
}
MATCH = MatchRow(42, "football", "Cork", "Lund", Status.IN_PLAY, NOW_US)
MATCH_ROW = MatchRow(42, "football", "Cork", "Lund", Status.IN_PLAY, 1_000_001)
MARKET_ROW = MarketRow(42 * 8 + 3, "goals", (Outcome("over", 1900), Outcome("under", 2100)), True, 2_000_002)


def steps_to_the_end(count: int, parameters: DatabaseParameters) -> list[tuple[MatchRow, MatchRow]]:
    """Returns the rows before and after each step of this many matches, from scheduled to finished."""
    steps = []
    for number in range(1, count + 1):
        context = StepContext(Random(number), parameters, NOW_US)
        row = create_match(number, context)
        while not MATCH_LIFE_CYCLE.is_finished(row):
            after = MATCH_LIFE_CYCLE.advance(row, context)
            assert after is not None
            steps.append((row, after))
            row = after
    return steps


def test_each_step_leads_to_a_legal_status(parameters: DatabaseParameters) -> None:
    transitions = {(before.status, after.status) for before, after in steps_to_the_end(300, parameters)}

    assert transitions == {(before, after) for before, allowed in LEGAL.items() for after in allowed}


def test_a_step_of_a_match_that_keeps_its_status_moves_its_start(parameters: DatabaseParameters) -> None:
    for before, after in steps_to_the_end(300, parameters):
        assert after.status != before.status or after.starts_at_us != before.starts_at_us
        assert after[:4] == before[:4]


def test_a_match_begins_when_it_is_kicked_off(parameters: DatabaseParameters) -> None:
    begun = {after.starts_at_us for _, after in steps_to_the_end(100, parameters) if after.status == Status.IN_PLAY}

    assert begun == {NOW_US}


def test_a_finished_match_stays_as_it_is_until_it_is_deleted(parameters: DatabaseParameters) -> None:
    finished = MatchRow(1, "football", "Cork", "Lund", Status.ENDED, NOW_US)

    assert {
        MATCH_LIFE_CYCLE.advance(finished, StepContext(Random(seed), parameters, NOW_US)) for seed in range(20)
    } == {finished, None}


def contexts(parameters: DatabaseParameters) -> list[StepContext]:
    return [StepContext(Random(seed), parameters, NOW_US + 1) for seed in range(200)]


def market(parameters: DatabaseParameters, seed: int = 1) -> MarketRow:
    return create_market(42, 3, StepContext(Random(seed), parameters, NOW_US))


def test_the_markets_of_a_match_differ_in_their_names() -> None:
    assert len({name for name, _ in MARKET_OUTCOMES}) == MAX_MARKETS


def test_the_odds_of_a_market_stay_within_bounds_and_each_move_changes_all_of_them(
    parameters: DatabaseParameters,
) -> None:
    row = market(parameters)
    for context in contexts(parameters):
        after = advance_market(row, MATCH, context)
        row_after = row if after is None else after
        if row_after.outcomes != row.outcomes:
            assert all(old != new for old, new in zip(row.outcomes, row_after.outcomes, strict=True))
        row = row_after

        assert all(MIN_ODDS <= outcome.odds_thousandths <= MAX_ODDS for outcome in row.outcomes)


def test_while_the_match_lasts_a_market_moves_is_suspended_resumes_or_is_withdrawn(
    parameters: DatabaseParameters,
) -> None:
    open_row = market(parameters)
    suspended_row = open_row._replace(suspended=True)
    outcomes = {
        (row.suspended, kind(row, advance_market(row, MATCH, m)))
        for row in (open_row, suspended_row)
        for m in contexts(parameters)
    }

    assert outcomes == {
        (False, "moved"),
        (False, "toggled"),
        (False, "gone"),
        (True, "moved"),
        (True, "toggled"),
        (True, "gone"),
    }


def kind(before: MarketRow, after: MarketRow | None) -> str:
    if after is None:
        return "gone"
    return "moved" if after.suspended == before.suspended else "toggled"


def test_a_market_of_a_finished_match_is_suspended_then_deleted(parameters: DatabaseParameters) -> None:
    row, over = market(parameters), MATCH._replace(status=Status.ENDED)
    (context, *_) = contexts(parameters)
    suspended = advance_market(row, over, context)

    assert suspended == row._replace(suspended=True, updated_at_us=NOW_US + 1)
    assert advance_market(suspended, over, context) is None


def test_a_market_without_its_match_is_deleted(parameters: DatabaseParameters) -> None:
    assert {advance_market(market(parameters), None, context) for context in contexts(parameters)} == {None}


def test_there_are_markets_of_unfinished_matches_at_the_beginning(parameters: DatabaseParameters) -> None:
    tables = memory_tables(DOMAIN, parameters, NOW_US)
    matches = tables["matches"].rows
    counts = Counter(market.match_number for market in tables["markets"].rows.values())

    assert counts == {number: 4 for number, match in matches.items() if not MATCH_LIFE_CYCLE.is_finished(match)}


def test_markets_are_offered_on_unfinished_matches_and_outlive_none_for_long(parameters: DatabaseParameters) -> None:
    tables = memory_tables(DOMAIN, parameters, NOW_US)
    deleted: Counter[bool] = Counter()
    offered: Counter[int] = Counter()
    for lsn in range(1, 4001):
        mutation = next_mutation(DOMAIN, tables, parameters, lsn, NOW_US)
        if mutation.table == "markets" and mutation.operation == "create":
            assert not MATCH_LIFE_CYCLE.is_finished(tables["matches"].rows[mutation.after.match_number])
            offered[mutation.after.number] += 1
        if mutation.table == "markets" and mutation.operation == "delete":
            deleted[mutation.before.match_number in tables["matches"].rows] += 1
        tables[mutation.table].apply(mutation)

    assert deleted[True] > 20
    assert deleted[False] > 20
    assert max(offered.values()) > 1, "a market that was withdrawn is offered again"


def test_without_markets_the_matches_go_on(parameters: DatabaseParameters) -> None:
    tables = memory_tables(DOMAIN, parameters, NOW_US)
    tables["markets"] = type(tables["markets"])()
    mutations = [next_mutation(DOMAIN, tables, parameters, lsn, NOW_US) for lsn in range(1, 50)]

    assert {mutation.table for mutation in mutations} == {"matches", "markets"}


def test_every_field_of_a_match_is_carried_over() -> None:
    message = MATCHES.message(MATCH_ROW)

    assert isinstance(message, Match)
    assert (message.match_id, message.sport, message.home, message.away) == ("match-000042", "football", "Cork", "Lund")
    assert message.status == MatchStatus.MATCH_STATUS_IN_PLAY
    assert message.starts_at.ToMicroseconds() == 1_000_001


def test_every_field_of_a_market_is_carried_over() -> None:
    message = MARKETS.message(MARKET_ROW)

    assert isinstance(message, Market)
    assert (message.market_id, message.match_id, message.name) == ("market-000042-3", "match-000042", "goals")
    assert [(each.name, each.odds_thousandths) for each in message.outcomes] == [("over", 1900), ("under", 2100)]
    assert message.suspended
    assert message.updated_at.ToMicroseconds() == 2_000_002


@pytest.mark.parametrize("name", list(MatchStatus.keys()))
def test_every_status_of_the_contract_is_known(name: str) -> None:
    assert (name.removeprefix("MATCH_STATUS_") in Status.__members__) == (name != "MATCH_STATUS_UNSPECIFIED")
