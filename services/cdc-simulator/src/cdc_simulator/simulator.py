"""Changes the tables at a steady pace and publishes their log, in turn, until it is told to stop."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

import structlog

from cdc_simulator.basis import Basis
from cdc_simulator.change_log import ChangeLog
from cdc_simulator.clock import Clock
from cdc_simulator.domain import Domain
from cdc_simulator.metrics import Metrics
from cdc_simulator.pacing import Pace
from cdc_simulator.publisher import Publisher
from cdc_simulator.readiness import Readiness
from cdc_simulator.tables import Tables
from cdc_simulator.workload import next_mutation

MOST_IN_TRANSACTION = 500
REPORT_INTERVAL_S = 0.2  # also how often the cursor is saved: a kill repeats what came after
PROGRESS_INTERVAL_S = 10.0
DRAIN_WAIT_S = 0.01

log = structlog.get_logger()


@dataclass(frozen=True)
class Bounds:
    """`limit` changes after the snapshot are all (0: endless); at `backlog` unacknowledged ones the tables rest."""

    limit: int
    backlog: int
    drain_s: float


class Simulator:
    """The tables, their log and the publisher at work; everything happens in the thread that calls `run`."""

    def __init__(
        self,
        domain: Domain,
        basis: Basis,
        tables: Tables,
        change_log: ChangeLog,
        publisher: Publisher,
        pace: Pace,
        bounds: Bounds,
        readiness: Readiness,
        metrics: Metrics,
        clock: Clock,
    ) -> None:
        self._domain = domain
        self._basis = basis
        self._tables = tables
        self._log = change_log
        self._publisher = publisher
        self._pace = pace
        self._bounds = bounds
        self._readiness = readiness
        self._metrics = metrics
        self._clock = clock
        self._report_at_s = self._progress_at_s = clock.monotonic_s()

    def run(self, stopping: Callable[[], bool]) -> None:
        """Returns when `stopping` says so, or when the limit is reached and Kafka has everything.

        Raises DatabaseError and PublishError. On every way out the cursor stands before what Kafka does not have.
        """
        try:
            while not stopping() and not self._is_complete():
                self._commit()
                self._publish()
                self._report()
                self._clock.sleep(self._wait_s())
            self._drain()
        finally:
            self._save_cursor()
            self._set_gauges()

    def _commit(self) -> None:
        due = self._pace.take(self._clock.monotonic_s(), min(MOST_IN_TRANSACTION, self._allowed()))
        if due == 0:
            return
        operations: Counter[str] = Counter()
        with self._tables.transaction(self._clock.now_us()) as commit_time_us:
            for _ in range(due):
                lsn = self._tables.log_sequence_number + 1
                mutation = next_mutation(self._domain, self._tables.rows, self._basis, lsn, commit_time_us)
                self._tables.apply(mutation)
                operations[mutation.operation] += 1
        for operation, count in operations.items():
            self._metrics.committed.labels(operation).inc(count)

    def _publish(self) -> None:
        if self._has_more_to_send():
            at_most = min(MOST_IN_TRANSACTION, self._publisher.room)
            self._publisher.send(self._log.read(self._publisher.sent_lsn, at_most), self._clock.now_us())
        self._publisher.poll()

    def _has_more_to_send(self) -> bool:
        return self._publisher.sent_lsn < self._tables.log_sequence_number and self._publisher.room > 0

    def _wait_s(self) -> float:
        return 0.0 if self._has_more_to_send() else self._pace.wait_s(self._clock.monotonic_s())

    def _report(self) -> None:
        now_s = self._clock.monotonic_s()
        if now_s - self._report_at_s < REPORT_INTERVAL_S:
            return
        self._report_at_s = now_s
        self._save_cursor()
        self._set_gauges()
        acknowledged = self._publisher.acknowledged_lsn
        self._report_readiness(acknowledged)
        if now_s - self._progress_at_s >= PROGRESS_INTERVAL_S:
            self._progress_at_s = now_s
            log.info("progress", committed_lsn=self._tables.log_sequence_number, acknowledged_lsn=acknowledged)

    def _set_gauges(self) -> None:
        for name, rows in self._tables.rows.items():
            self._metrics.rows.labels(name).set(len(rows))
        self._metrics.committed_lsn.set(self._tables.log_sequence_number)
        self._metrics.acknowledged_lsn.set(self._publisher.acknowledged_lsn)
        self._metrics.lag.set(self._lag())

    def _report_readiness(self, acknowledged: int) -> None:
        if acknowledged < self._log.snapshot_lsn:
            self._readiness.reason = f"the snapshot: Kafka has {acknowledged} of {self._log.snapshot_lsn} rows"
        elif self._readiness.reason is not None:
            self._readiness.reason = None
            log.info("ready", committed_lsn=self._tables.log_sequence_number)

    def _drain(self) -> None:
        deadline_s = self._clock.monotonic_s() + self._bounds.drain_s
        while self._lag() and self._clock.monotonic_s() < deadline_s:
            self._publish()
            self._clock.sleep(DRAIN_WAIT_S if not self._has_more_to_send() else 0.0)
        log.info("stopped", committed_lsn=self._tables.log_sequence_number, left_for_the_next_start=self._lag())

    def _save_cursor(self) -> None:
        if self._publisher.acknowledged_lsn > self._log.acknowledged_lsn:
            self._log.acknowledge(self._publisher.acknowledged_lsn)

    def _allowed(self) -> int:
        allowed = self._bounds.backlog - self._lag()
        return min(allowed, self._left()) if self._bounds.limit else allowed

    def _is_complete(self) -> bool:
        return self._bounds.limit > 0 and self._left() <= 0 and self._lag() == 0

    def _left(self) -> int:
        return self._log.snapshot_lsn + self._bounds.limit - self._tables.log_sequence_number

    def _lag(self) -> int:
        return self._tables.log_sequence_number - self._publisher.acknowledged_lsn
