"""The checks of the stories about the query service find each kind of broken promise."""

from drivers.state_checks import Seen, StateChecks
from drivers.state_writer import Acknowledged, StateLog

from statecast.query.v1.query_pb2 import Absence, Freshness, State
from statecast.state.v1.state_pb2 import Position

EPOCH = 5


def log_of(*records: tuple[float, int, int]) -> StateLog:
    """Returns a log of one key in partition 0: when each record was acknowledged, its offset and its sequence."""
    log = StateLog()
    for at, offset, sequence in records:
        log.note(0, "key", Acknowledged(at, offset, sequence, b"row"))
    return log


def state(offset: int, sequence: int, epoch: int = EPOCH) -> State:
    """Returns a value as an instance answers it."""
    return State(position=Position(epoch=epoch, offset=offset), payload=f"{sequence} key".encode())


def seen(offset: int, sequence: int | None) -> Seen:
    """Returns the state of a key that a reader holds."""
    return Seen(Position(epoch=EPOCH, offset=offset), sequence)


def freshness(through: int, lag_ms: int = 100) -> Freshness:
    """Returns the freshness that an answer states."""
    return Freshness(lag_ms=lag_ms, current_through=Position(epoch=EPOCH, offset=through), answered_by="query-1")


def broken_by(log: StateLog, held: Seen | None, answer: State, fresh: Freshness, began: float) -> list[str]:
    """Returns the promises that one answer breaks."""
    checks = StateChecks(log, "reader")
    checks.value("key", held, answer, fresh, began)
    return checks.broken


def test_an_answer_that_keeps_every_promise_breaks_nothing() -> None:
    log = log_of((1.0, 0, 1), (2.0, 1, 2))

    assert broken_by(log, seen(0, 1), state(1, 2), freshness(1), began=10.0) == []


def test_an_older_value_than_one_already_held_is_found() -> None:
    [by_position] = broken_by(log_of(), seen(5, 2), state(4, 2), freshness(5), began=10.0)
    [by_sequence] = broken_by(log_of(), seen(5, 2), state(6, 1), freshness(6), began=10.0)

    assert "went back from 5 to 4" in by_position
    assert "went back from sequence 2 to 1" in by_sequence


def test_two_values_at_one_position_and_a_new_epoch_are_found() -> None:
    [two] = broken_by(log_of(), seen(5, 2), state(5, 3), freshness(5), began=10.0)
    [epoch] = broken_by(log_of(), seen(5, 2), state(6, 3, epoch=6), freshness(6), began=10.0)

    assert "has two values at 5" in two
    assert "changed its epoch from 5 to 6" in epoch


def test_a_record_acknowledged_before_the_lag_that_is_missing_is_found() -> None:
    log = log_of((1.0, 0, 1), (9.8, 1, 2))
    broken = broken_by(log, None, state(0, 1), freshness(0, lag_ms=100), began=10.0)

    assert any("misses 1, acknowledged 100 ms before its lag allows" in each for each in broken)
    assert any("is current through 0, not 1" in each for each in broken)


def test_a_record_acknowledged_within_the_lag_may_be_missing() -> None:
    log = log_of((1.0, 0, 1), (9.8, 1, 2))

    assert broken_by(log, None, state(0, 1), freshness(0, lag_ms=201), began=10.0) == []


def test_a_replay_need_not_be_seen_though_it_must_be_read() -> None:
    log = log_of((1.0, 0, 2), (2.0, 1, 1))
    broken = broken_by(log, None, state(0, 2), freshness(0), began=10.0)

    assert broken_by(log, None, state(0, 2), freshness(1), began=10.0) == []
    assert len(broken) == 1
    assert "is current through 0, not 1" in broken[0]


def test_an_unchanged_key_that_has_changed_is_found() -> None:
    checks = StateChecks(log_of((1.0, 0, 1), (2.0, 1, 2)), "reader")
    checks.unchanged("key", seen(0, 1), freshness(1), began=10.0)

    assert len(checks.broken) == 1
    assert "misses 1" in checks.broken[0]


def test_an_absence_must_be_a_known_deletion() -> None:
    checks = StateChecks(log_of((1.0, 0, 1)), "reader")
    absence = Absence(position=Position(epoch=EPOCH, offset=0))
    checks.absence("key", None, absence, freshness(0), began=10.0)
    absence.deleted = True
    checks.absence("key", None, absence, freshness(0), began=10.0)

    assert len(checks.broken) == 1
    assert "was answered as never seen" in checks.broken[0]


def test_what_a_reader_holds_is_the_newest_of_concurrent_answers() -> None:
    checks = StateChecks(log_of(), "reader")
    checks.value("key", None, state(4, 2), freshness(4), began=10.0)
    checks.value("key", None, state(3, 1), freshness(4), began=10.0)

    assert checks.broken == []
    assert checks.seen["key"].position.offset == 4
