"""The life of a market."""

from random import Random

from cdc_simulator.basis import Basis, Moment
from cdc_simulator.domains.odds.market_life import HIGHEST_ODDS, LOWEST_ODDS, QUESTIONS, go_on, offer
from cdc_simulator.domains.odds.rows import MOST_MARKETS, MarketRow, MatchRow, Status

NOW_US = 1_724_848_496_123_456
MATCH = MatchRow(42, "football", "Cork", "Lund", Status.IN_PLAY, NOW_US)


def moments(basis: Basis) -> list[Moment]:
    return [Moment(Random(seed), basis, NOW_US + 1) for seed in range(200)]


def market(basis: Basis, seed: int = 1) -> MarketRow:
    return offer(42, 3, Moment(Random(seed), basis, NOW_US))


def test_there_is_a_question_for_each_place() -> None:
    assert len({name for name, _ in QUESTIONS}) == MOST_MARKETS


def test_its_odds_stay_within_bounds_and_each_move_changes_all_of_them(basis: Basis) -> None:
    row = market(basis)
    for moment in moments(basis):
        after = go_on(row, MATCH, moment)
        row_after = row if after is None else after
        if row_after.outcomes != row.outcomes:
            assert all(old != new for old, new in zip(row.outcomes, row_after.outcomes, strict=True))
        row = row_after

        assert all(LOWEST_ODDS <= outcome.odds_thousandths <= HIGHEST_ODDS for outcome in row.outcomes)


def test_while_the_match_lasts_it_moves_rests_resumes_or_is_withdrawn(basis: Basis) -> None:
    open_row = market(basis)
    suspended_row = open_row._replace(suspended=True)
    seen = {
        (row.suspended, kind(row, go_on(row, MATCH, m))) for row in (open_row, suspended_row) for m in moments(basis)
    }

    assert seen == {
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


def test_of_a_finished_match_it_is_suspended_then_deleted(basis: Basis) -> None:
    row, over = market(basis), MATCH._replace(status=Status.ENDED)
    (moment, *_) = moments(basis)
    suspended = go_on(row, over, moment)

    assert suspended == row._replace(suspended=True, updated_at_us=NOW_US + 1)
    assert go_on(suspended, over, moment) is None


def test_after_its_match_it_is_deleted(basis: Basis) -> None:
    assert {go_on(market(basis), None, moment) for moment in moments(basis)} == {None}
