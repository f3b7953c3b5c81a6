"""The legal steps in the life of a market: its odds move, it is suspended, and it goes with its match; pure."""

from cdc_simulator.basis import Moment
from cdc_simulator.chance import Step, end, take_step
from cdc_simulator.domains.odds.match_life import is_finished
from cdc_simulator.domains.odds.rows import MOST_MARKETS, MarketRow, MatchRow, Outcome

QUESTIONS = (
    ("match winner", ("home", "draw", "away")),
    ("winner at half-time", ("home", "draw", "away")),
    ("first goal", ("home", "nobody", "away")),
    ("goals", ("over", "under")),
    ("goals of the home side", ("over", "under")),
    ("goals of the visiting side", ("over", "under")),
    ("both score", ("yes", "no")),
    ("extra time", ("yes", "no")),
)
LOWEST_ODDS, HIGHEST_ODDS = 1010, 20_000


def offer(match_number: int, place: int, moment: Moment) -> MarketRow:
    """Returns a new market: the match's question in that place, from 0 to MOST_MARKETS - 1."""
    name, answers = QUESTIONS[place]
    outcomes = tuple(Outcome(answer, moment.random.randrange(LOWEST_ODDS, HIGHEST_ODDS, 10)) for answer in answers)
    return MarketRow(match_number * MOST_MARKETS + place, name, outcomes, False, moment.now_us)


def go_on(row: MarketRow, match: MatchRow | None, moment: Moment) -> MarketRow | None:
    """Returns the market after one legal step, or absent when it goes: at the latest after its match.

    A match that is finished has its markets suspended, then deleted.
    """
    if match is None:
        return None
    if is_finished(match):
        return None if row.suspended else _suspend(row, moment)
    return take_step(row, SUSPENDED_STEPS if row.suspended else OPEN_STEPS, moment)


def _move_odds(row: MarketRow, moment: Moment) -> MarketRow:
    outcomes = tuple(outcome._replace(odds_thousandths=_moved(outcome, moment)) for outcome in row.outcomes)
    return row._replace(outcomes=outcomes, updated_at_us=moment.now_us)


def _moved(outcome: Outcome, moment: Moment) -> int:
    """A tenth up or down at most, and never where it was."""
    change = 10 * (1 + moment.random.randrange(max(1, outcome.odds_thousandths // 100)))
    lower, higher = outcome.odds_thousandths - change, outcome.odds_thousandths + change
    return higher if lower < LOWEST_ODDS or (higher <= HIGHEST_ODDS and moment.random.random() < 0.5) else lower


def _suspend(row: MarketRow, moment: Moment) -> MarketRow:
    return row._replace(suspended=True, updated_at_us=moment.now_us)


def _resume(row: MarketRow, moment: Moment) -> MarketRow:
    return row._replace(suspended=False, updated_at_us=moment.now_us)


OPEN_STEPS = (Step(85, _move_odds), Step(13, _suspend), Step(2, end))
SUSPENDED_STEPS = (Step(30, _move_odds), Step(65, _resume), Step(5, end))
