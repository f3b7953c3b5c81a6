"""The lease that keeps a second process off where there is no lock."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from stream_processor.errors import CheckpointsTakenError, CheckpointsUnusableError, SettingsError
from stream_processor.operation.checkpoint_lease import ABANDONED_S, NOTE, RENEW_S, Lease


class MemoryNotes:
    """Notes that can be made to fail."""

    def __init__(self) -> None:
        self.held: dict[str, dict[str, Any]] = {}
        self.fail = False

    def read(self, name: str) -> dict[str, Any] | None:
        self._try()
        return self.held.get(name)

    def replace(self, name: str, content: Mapping[str, object]) -> None:
        self._try()
        self.held[name] = dict(content)

    def _try(self) -> None:
        if self.fail:
            raise CheckpointsUnusableError("out of reach")


class Time:
    """A clock that moves when somebody waits, and then lets the others act."""

    def __init__(self) -> None:
        self.now = 0.0
        self.then: Callable[[], object] = lambda: None

    def pause(self, seconds: float) -> None:
        self.now += seconds
        self.then()


@pytest.fixture
def notes() -> MemoryNotes:
    return MemoryNotes()


@pytest.fixture
def time() -> Time:
    return Time()


@pytest.fixture
def make(notes: MemoryNotes, time: Time) -> Callable[[], Lease]:
    """A lease of another process, each time."""
    return lambda: Lease(notes, "s3a://bucket/place", lambda: time.now, time.pause)


def test_a_free_one_is_taken_at_once(make: Callable[[], Lease], time: Time) -> None:
    make().take()

    assert time.now == 0


def test_one_that_is_renewed_is_refused_and_its_holder_named(make: Callable[[], Lease], time: Time) -> None:
    first = make()
    first.take()
    time.then = first.renew

    with pytest.raises(SettingsError, match=r"another process, .*, process \d+, works on s3a://bucket/place"):
        make().take()
    assert time.now <= RENEW_S
    first.check()


def test_one_that_nobody_renews_is_taken_after_a_time(make: Callable[[], Lease], time: Time) -> None:
    first, second = make(), make()
    first.take()

    second.take()

    assert time.now == ABANDONED_S

    first.renew()

    with pytest.raises(CheckpointsTakenError, match="no longer this process's"):
        first.check()
    second.renew()
    second.check()


def test_one_that_is_given_back_is_free(make: Callable[[], Lease], time: Time) -> None:
    first = make()
    with first.hold():
        pass

    make().take()

    assert time.now == 0


def test_a_note_that_is_just_being_replaced_is_not_a_free_one(
    make: Callable[[], Lease], time: Time, notes: MemoryNotes
) -> None:
    first = make()
    first.take()
    content = notes.held[NOTE]

    def replace() -> None:
        if notes.held.pop(NOTE, None) is None:
            notes.held[NOTE] = {**content, "renewals": 9}

    time.then = replace
    with pytest.raises(SettingsError, match="another process"):
        make().take()


def test_one_that_cannot_be_renewed_is_lost_when_others_may_take_it(
    make: Callable[[], Lease], time: Time, notes: MemoryNotes
) -> None:
    lease = make()
    lease.take()
    notes.fail = True
    time.now = ABANDONED_S - 1
    lease.renew()
    lease.check()
    time.now = ABANDONED_S
    lease.renew()

    with pytest.raises(CheckpointsTakenError, match="out of reach"):
        lease.check()
