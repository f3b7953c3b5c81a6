"""The ledger gives each row to one runner, in any order of reading the partitions."""

from hypothesis import given
from hypothesis import strategies as st

from statecast.jobs.v1.job_pb2 import JobRecord, PartitionsCompleted, RowEnded, RowStarted, RunnerAlive
from statecast.state.v1.state_pb2 import StateKey
from statecast_jobs.ledger import Ledger, Status

KEY = ("client-1", "")
LEASE_S = 10.0


def started(runner: str, attempt: int = 1) -> JobRecord:
    return JobRecord(runner=runner, row_started=RowStarted(key=StateKey(group="client-1"), attempt=attempt))


def ended(runner: str, attempt: int = 1, *, succeeded: bool = True) -> JobRecord:
    event = RowEnded(
        key=StateKey(group="client-1"), attempt=attempt, succeeded=succeeded, reason="" if succeeded else "no"
    )
    return JobRecord(runner=runner, row_ended=event)


def ledger_of(*records: JobRecord, runner: str = "me", max_attempts: int = 2) -> Ledger:
    ledger = Ledger(runner, max_attempts, LEASE_S)
    for record in records:
        ledger.apply(record, now_s=0.0)
    return ledger


def test_a_row_that_nobody_has_begun_is_open() -> None:
    ledger = ledger_of()

    assert ledger.status(KEY, 0.0) is Status.OPEN
    assert ledger.next_attempt(KEY) == 1


def test_the_first_who_starts_has_the_row() -> None:
    ledger = ledger_of(started("other"), started("me"))

    assert not ledger.is_mine(KEY, 1)
    assert ledger.status(KEY, 0.0) is Status.RUNNING


def test_a_row_that_was_handled_is_done_for_good() -> None:
    ledger = ledger_of(started("other"), ended("other"), started("me", 2))

    assert ledger.status(KEY, 0.0) is Status.DONE
    assert not ledger.is_mine(KEY, 2)


def test_a_runner_learns_that_a_row_was_handled_before_its_attempt() -> None:
    ledger = ledger_of(started("frozen"), ended("frozen"), started("me", 2))

    assert ledger.next_attempt(KEY) == 3, "the runner waits until it has read that the attempt is made, for ever"
    assert not any(ledger.is_mine(KEY, attempt) for attempt in (1, 2, 3))


def test_a_row_that_fails_is_open_until_its_attempts_are_used_up() -> None:
    once = ledger_of(started("me"), ended("me", succeeded=False))
    twice = ledger_of(started("me"), ended("me", succeeded=False), started("me", 2), ended("me", 2, succeeded=False))

    assert once.status(KEY, 0.0) is Status.OPEN
    assert once.next_attempt(KEY) == 2
    assert twice.status(KEY, 0.0) is Status.FAILED
    assert list(twice.rows(0.0)) == [(KEY, Status.FAILED, "no")]


def test_the_row_of_a_runner_that_is_silent_for_the_lease_is_in_doubt() -> None:
    ledger = ledger_of(started("other"))

    assert ledger.status(KEY, LEASE_S - 1) is Status.RUNNING
    assert ledger.status(KEY, LEASE_S) is Status.IN_DOUBT


def test_a_runner_that_says_that_it_lives_keeps_its_row() -> None:
    ledger = ledger_of(started("other"))
    ledger.apply(JobRecord(runner="other", runner_alive=RunnerAlive()), now_s=LEASE_S - 1)

    assert ledger.status(KEY, LEASE_S) is Status.RUNNING


def test_a_runner_does_not_doubt_itself() -> None:
    ledger = ledger_of(started("me"))

    assert ledger.status(KEY, 10 * LEASE_S) is Status.RUNNING


def test_a_frozen_runner_that_ends_late_has_handled_the_row_all_the_same() -> None:
    ledger = ledger_of(started("other"), started("me", 2), ended("other"))

    assert ledger.status(KEY, 0.0) is Status.DONE


def test_completed_partitions_add_up() -> None:
    completed = [
        JobRecord(runner="a", partitions_completed=PartitionsCompleted(partitions=each)) for each in ([0, 1], [1, 3])
    ]

    assert ledger_of(*completed).completed == {0, 1, 3}


EVENTS = st.builds(
    lambda runner, attempt, kind: started(runner, attempt) if kind is None else ended(runner, attempt, succeeded=kind),
    st.sampled_from(["a", "b", "c"]),
    st.integers(1, 4),
    st.sampled_from([None, True, False]),
)


@given(st.lists(EVENTS, max_size=30))
def test_of_all_runners_at_most_one_has_an_attempt(records: list[JobRecord]) -> None:
    ledgers = {runner: ledger_of(runner=runner) for runner in ("a", "b", "c")}
    owners: dict[int, str] = {}
    for record in records:
        for runner, ledger in ledgers.items():
            ledger.apply(record, now_s=0.0)
            for attempt in range(1, 6):
                if ledger.is_mine(KEY, attempt):
                    assert owners.setdefault(attempt, runner) == runner


def test_a_record_of_a_newer_runner_changes_nothing_and_shows_that_it_lives() -> None:
    event_of_field_127 = b"\xfa\x07\x04more"
    unknown = JobRecord.FromString(JobRecord(runner="other").SerializeToString() + event_of_field_127)
    ledger = ledger_of(started("other"))
    ledger.apply(unknown, now_s=LEASE_S)

    assert ledger.status(KEY, LEASE_S + 1) is Status.RUNNING
