"""Changes the tables at a steady pace and publishes their log, in turn, until it is stopped."""

from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

import structlog

from cdc_simulator.domain import DatabaseParameters, Domain, Mutation, Rows, next_mutation
from cdc_simulator.errors import DatabaseAwayError
from cdc_simulator.metrics import Metrics, Readiness
from cdc_simulator.pacing import Clock, Pace
from cdc_simulator.publication import Publication
from cdc_simulator.settings import Settings

MAX_IN_TRANSACTION = 500
REPORT_INTERVAL_S = 0.2  # also how often the cursor is saved: a kill repeats later changes
PROGRESS_INTERVAL_S = 10.0
DRAIN_WAIT_S = 0.01
RETRY_INTERVAL_S = 0.5

log = structlog.get_logger()


class Tables(Protocol):
    """The tables of a domain, in whichever database."""

    log_sequence_number: int
    """That of the last change."""

    @property
    def rows(self) -> Mapping[str, Rows]:
        """By the name of the table."""

    def transaction(self, now_us: int) -> AbstractContextManager[int]:
        """Yields the commit time, and commits the changes that the block applies. Raises DatabaseError."""

    def apply(self, mutation: Mutation) -> None:
        """Makes one change; only within `transaction`."""


@dataclass(eq=False)
class Simulator:
    """The tables and their publication at work; everything happens in the thread that calls `run`."""

    domain: Domain
    parameters: DatabaseParameters
    tables: Tables
    publication: Publication
    settings: Settings
    readiness: Readiness
    metrics: Metrics
    clock: Clock

    def __post_init__(self) -> None:
        self._report_at_s = self._progress_at_s = self.clock.monotonic_s()
        self._pace = Pace(self.settings.rate, self._report_at_s)
        self._away: str | None = None

    def run(self, stopping: Callable[[], bool]) -> None:
        """Runs until `stopping` returns true, or until the limit is reached and Kafka has every change.

        Raises DatabaseError and PublishError. On every exit the cursor is before the first change that Kafka lacks.
        """
        try:
            while not stopping() and not self._is_complete():
                self._commit_or_note()
                self.publication.publish(self.tables.log_sequence_number)
                self._report()
                self.clock.sleep(0.0 if self._has_more_to_send() else self._wait_s())
            self._drain()
        finally:
            self.publication.save_cursor()
            self._set_gauges()

    def _commit_or_note(self) -> None:
        """Makes the changes that are due; when the database is away they are left out, and the readiness says so."""
        try:
            self._commit()
        except DatabaseAwayError as error:
            if self._away is None:
                log.warning("waiting", reason=str(error))
            self._away = self.readiness.reason = str(error)

    def _wait_s(self) -> float:
        return RETRY_INTERVAL_S if self._away else self._pace.wait_s(self.clock.monotonic_s())

    def _commit(self) -> None:
        due = self._pace.take(self.clock.monotonic_s(), min(MAX_IN_TRANSACTION, self._allowed()))
        if due == 0:
            return
        operations: Counter[str] = Counter()
        with self.tables.transaction(self.clock.now_us()) as commit_time_us:
            for _ in range(due):
                lsn = self.tables.log_sequence_number + 1
                mutation = next_mutation(self.domain, self.tables.rows, self.parameters, lsn, commit_time_us)
                self.tables.apply(mutation)
                operations[mutation.operation] += 1
        self._away = None
        for operation, count in operations.items():
            self.metrics.committed.labels(operation).inc(count)

    def _has_more_to_send(self) -> bool:
        return self.publication.has_more(self.tables.log_sequence_number)

    def _report(self) -> None:
        now_s = self.clock.monotonic_s()
        if now_s - self._report_at_s < REPORT_INTERVAL_S:
            return
        self._report_at_s = now_s
        self.publication.save_cursor()
        self._set_gauges()
        acknowledged, snapshot_lsn = self.publication.acknowledged_lsn, self.publication.snapshot_lsn
        if acknowledged < snapshot_lsn:
            self.readiness.reason = f"the snapshot: Kafka has {acknowledged} of {snapshot_lsn} rows"
        elif self._away is None and self.readiness.reason is not None:
            self.readiness.reason = None
            log.info("ready", committed_lsn=self.tables.log_sequence_number)
        if now_s - self._progress_at_s >= PROGRESS_INTERVAL_S:
            self._progress_at_s = now_s
            log.info("progress", committed_lsn=self.tables.log_sequence_number, acknowledged_lsn=acknowledged)

    def _set_gauges(self) -> None:
        for name, rows in self.tables.rows.items():
            self.metrics.rows.labels(name).set(len(rows))
        self.metrics.committed_lsn.set(self.tables.log_sequence_number)
        self.metrics.acknowledged_lsn.set(self.publication.acknowledged_lsn)
        self.metrics.lag.set(self._lag())

    def _drain(self) -> None:
        deadline_s = self.clock.monotonic_s() + self.settings.drain_s
        while self._lag() and self.clock.monotonic_s() < deadline_s:
            self.publication.publish(self.tables.log_sequence_number)
            self.clock.sleep(0.0 if self._has_more_to_send() else DRAIN_WAIT_S)
        log.info("stopped", committed_lsn=self.tables.log_sequence_number, left_for_the_next_start=self._lag())

    def _allowed(self) -> int:
        allowed = self.settings.backlog - self._lag()
        return min(allowed, self._left()) if self.settings.limit else allowed

    def _is_complete(self) -> bool:
        return self.settings.limit > 0 and self._left() <= 0 and self._lag() == 0

    def _left(self) -> int:
        return self.publication.snapshot_lsn + self.settings.limit - self.tables.log_sequence_number

    def _lag(self) -> int:
        return self.tables.log_sequence_number - self.publication.acknowledged_lsn
