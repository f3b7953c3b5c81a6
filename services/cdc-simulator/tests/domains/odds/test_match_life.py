"""The life of a match."""

from random import Random

from cdc_simulator.basis import Basis, Moment
from cdc_simulator.domains.odds.match_life import go_on, is_finished, schedule
from cdc_simulator.domains.odds.rows import MatchRow, Status

NOW_US = 1_724_848_496_123_456
LEGAL = {
    Status.SCHEDULED: {Status.SCHEDULED, Status.ABOUT_TO_START, Status.CANCELLED},
    Status.ABOUT_TO_START: {Status.ABOUT_TO_START, Status.IN_PLAY, Status.CANCELLED},
    Status.IN_PLAY: {Status.ENDED, Status.CANCELLED},
}


def lives(count: int, basis: Basis) -> list[tuple[MatchRow, MatchRow]]:
    """The steps, before and after, of so many matches from scheduled to finished."""
    steps = []
    for number in range(1, count + 1):
        moment = Moment(Random(number), basis, NOW_US)
        row = schedule(number, moment)
        while not is_finished(row):
            after = go_on(row, moment)
            assert after is not None
            steps.append((row, after))
            row = after
    return steps


def test_each_step_leads_to_a_legal_status(basis: Basis) -> None:
    seen = {(before.status, after.status) for before, after in lives(300, basis)}

    assert seen == {(before, after) for before, allowed in LEGAL.items() for after in allowed}


def test_a_step_that_keeps_the_status_moves_the_start(basis: Basis) -> None:
    for before, after in lives(300, basis):
        assert after.status != before.status or after.starts_at_us != before.starts_at_us
        assert after[:4] == before[:4]


def test_it_begins_when_it_is_kicked_off(basis: Basis) -> None:
    begun = {after.starts_at_us for _, after in lives(100, basis) if after.status == Status.IN_PLAY}

    assert begun == {NOW_US}


def test_a_finished_match_stays_as_it_is_until_it_is_deleted(basis: Basis) -> None:
    finished = MatchRow(1, "football", "Cork", "Lund", Status.ENDED, NOW_US)

    assert {go_on(finished, Moment(Random(seed), basis, NOW_US)) for seed in range(20)} == {finished, None}
