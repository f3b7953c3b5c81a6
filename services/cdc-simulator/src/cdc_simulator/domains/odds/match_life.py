"""The legal steps in the life of a match: scheduled, about to start, in play, ended; or cancelled; pure."""

from cdc_simulator.basis import Moment
from cdc_simulator.chance import Step, take_step_of_status
from cdc_simulator.domains.odds.rows import MatchRow, Status
from cdc_simulator.life import Life
from cdc_simulator.timestamps import US

SPORTS = ("football", "handball", "ice hockey")
SIDES = ("Aberdeen", "Bologna", "Cork", "Dijon", "Espoo", "Faro", "Gdansk", "Haifa", "Izmir", "Jena", "Kosice", "Lund")
MINUTE_US = 60 * US
LATEST_START_MINUTES = 7 * 24 * 60
STEADY_CREATION_CHANCE = 0.17


def schedule(number: int, moment: Moment) -> MatchRow:
    """Returns a new match between two random sides."""
    home, away = moment.random.sample(SIDES, 2)
    return MatchRow(number, moment.random.choice(SPORTS), home, away, Status.SCHEDULED, _start_us(moment))


def go_on(row: MatchRow, moment: Moment) -> MatchRow | None:
    """Returns the match after one legal step; a finished one stays as it is until, half of the times, it is deleted."""
    return take_step_of_status(row, STEPS, moment)


def is_finished(row: MatchRow) -> bool:
    """Whether nothing but deletion can happen to the match any more."""
    return row.status not in STEPS


def _call(row: MatchRow, _moment: Moment) -> MatchRow:
    return row._replace(status=Status.ABOUT_TO_START)


def _kick_off(row: MatchRow, moment: Moment) -> MatchRow:
    return row._replace(status=Status.IN_PLAY, starts_at_us=moment.now_us)


def _finish(row: MatchRow, _moment: Moment) -> MatchRow:
    return row._replace(status=Status.ENDED)


def _cancel(row: MatchRow, _moment: Moment) -> MatchRow:
    return row._replace(status=Status.CANCELLED)


def _reschedule(row: MatchRow, moment: Moment) -> MatchRow:
    starts_at_us = _start_us(moment)
    return row._replace(starts_at_us=starts_at_us + MINUTE_US * (starts_at_us == row.starts_at_us))


def _delay(row: MatchRow, moment: Moment) -> MatchRow:
    return row._replace(starts_at_us=row.starts_at_us + MINUTE_US * (5 + moment.random.randrange(25)))


def _start_us(moment: Moment) -> int:
    return (moment.now_us // MINUTE_US + 1 + moment.random.randrange(LATEST_START_MINUTES)) * MINUTE_US


STEPS = {
    Status.SCHEDULED: (Step(65, _call), Step(25, _reschedule), Step(10, _cancel)),
    Status.ABOUT_TO_START: (Step(70, _kick_off), Step(25, _delay), Step(5, _cancel)),
    Status.IN_PLAY: (Step(95, _finish), Step(5, _cancel)),
}
MATCH_LIFE = Life("matches", schedule, go_on, STEADY_CREATION_CHANCE)
