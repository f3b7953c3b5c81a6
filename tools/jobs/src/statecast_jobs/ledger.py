"""Who handles which row of a run: the sum of the topic's records, the same at every runner; pure.

The records of a row are on one partition of the topic, so all runners read them in one order. The first `RowStarted`
of an attempt decides who makes it; a runner begins only when it has read that its own came first. So two runners that
want the same row agree without a lock, and one that was frozen finds out before it begins anything more.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from statecast.jobs.v1.job_pb2 import JobRecord
from statecast.state.v1.state_pb2 import StateKey

RowKey = tuple[str, str]
"""Group and member. The sort value is no part of it: it may change while the row stays the same."""


class Status(Enum):
    """The state of a row in a run."""

    OPEN = "open"
    """Nobody handles it, and it may be begun."""
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    """Every attempt failed."""
    IN_DOUBT = "in doubt"
    """Its runner died on the way: whether the command had its effect is not known."""


@dataclass(slots=True)
class _Row:
    attempt: int = 0
    runner: str = ""
    running: bool = False
    done: bool = False
    reason: str = ""


class Ledger:
    """The rows of one run. `lease_s` is how long a runner may be silent before it is taken for dead."""

    def __init__(self, runner: str, max_attempts: int, lease_s: float) -> None:
        self._runner = runner
        self._max_attempts = max_attempts
        self._lease_s = lease_s
        self._rows: dict[RowKey, _Row] = {}
        self._heard_s: dict[str, float] = {}
        self.completed: set[int] = set()
        """The partitions of which every row is settled."""

    def apply(self, record: JobRecord, now_s: float) -> None:
        """Takes the next record of its partition, read at `now_s` of a clock that never goes back."""
        self._heard_s[record.runner] = now_s
        match record.WhichOneof("event"):
            case "row_started":
                started = record.row_started
                self._start(self._row(started.key), record.runner, started.attempt)
            case "row_ended":
                ended = record.row_ended
                row = self._row(ended.key)
                # An older attempt may end after a newer one has begun: that it succeeded is true all the same.
                row.done = row.done or ended.succeeded
                if ended.attempt >= row.attempt:
                    row.attempt, row.running, row.reason = ended.attempt, False, ended.reason
            case "partitions_completed":
                self.completed.update(record.partitions_completed.partitions)

    def _start(self, row: _Row, runner: str, attempt: int) -> None:
        if attempt == row.attempt + 1:
            # Counted also when an older attempt has succeeded meanwhile: its runner waits to read who makes it.
            row.attempt, row.runner, row.running = attempt, runner, not row.done

    def _row(self, key: StateKey) -> _Row:
        return self._rows.setdefault(row_key(key), _Row())

    def next_attempt(self, key: RowKey) -> int:
        """Returns the number of the attempt that a runner may begin."""
        row = self._rows.get(key)
        return 1 if row is None else row.attempt + 1

    def is_mine(self, key: RowKey, attempt: int) -> bool:
        """Returns whether this runner makes that attempt."""
        row = self._rows.get(key)
        return row is not None and row.running and (row.attempt, row.runner) == (attempt, self._runner)

    def status(self, key: RowKey, now_s: float) -> Status:
        row = self._rows.get(key)
        if row is None:
            return Status.OPEN
        return self._status(row, now_s)

    def _status(self, row: _Row, now_s: float) -> Status:
        if row.done:
            return Status.DONE
        if row.running:
            return Status.RUNNING if self._lives(row.runner, now_s) else Status.IN_DOUBT
        return Status.OPEN if row.attempt < self._max_attempts else Status.FAILED

    def _lives(self, runner: str, now_s: float) -> bool:
        return runner == self._runner or now_s - self._heard_s[runner] < self._lease_s

    def rows(self, now_s: float) -> Iterator[tuple[RowKey, Status, str]]:
        """Yields every row that was ever begun: its key, its status, and why its last attempt failed."""
        for key, row in self._rows.items():
            yield key, self._status(row, now_s), row.reason


def row_key(key: StateKey) -> RowKey:
    return key.group, key.member
