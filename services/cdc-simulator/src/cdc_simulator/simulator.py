"""Changes the tables at a steady pace and publishes their log, in turn, until it is stopped."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

import structlog

from cdc_simulator.domain import DatabaseParameters, Domain, next_mutation
from cdc_simulator.metrics import Metrics, Readiness
from cdc_simulator.pacing import Clock, Pace
from cdc_simulator.publisher import Publisher
from cdc_simulator.settings import Settings
from cdc_simulator.tables import ChangeLog, Tables

MAX_IN_TRANSACTION = 500
REPORT_INTERVAL_S = 0.2  # also how often the cursor is saved: a kill repeats what came after
PROGRESS_INTERVAL_S = 10.0
DRAIN_WAIT_S = 0.01

log = structlog.get_logger()


@dataclass(eq=False)
class Simulator:
    """The tables, their log and the publisher at work; everything happens in the thread that calls `run`."""

    domain: Domain
    parameters: DatabaseParameters
    tables: Tables
    log: ChangeLog
    publisher: Publisher
    settings: Settings
    readiness: Readiness
    metrics: Metrics
    clock: Clock

    def __post_init__(self) -> None:
        self._report_at_s = self._progress_at_s = self.clock.monotonic_s()
        self._pace = Pace(self.settings.rate, self._report_at_s)

    def run(self, stopping: Callable[[], bool]) -> None:
        """Returns when `stopping` says so, or when the limit is reached and Kafka has everything.

        Raises DatabaseError and PublishError. On every way out the cursor stands before what Kafka does not have.
        """
        try:
            while not stopping() and not self._is_complete():
                self._commit()
                self._publish()
                self._report()
                self.clock.sleep(0.0 if self._has_more_to_send() else self._pace.wait_s(self.clock.monotonic_s()))
            self._drain()
        finally:
            self._save_cursor()
            self._set_gauges()

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
        for operation, count in operations.items():
            self.metrics.committed.labels(operation).inc(count)

    def _publish(self) -> None:
        if self._has_more_to_send():
            at_most = min(MAX_IN_TRANSACTION, self.publisher.room)
            self.publisher.send(self.log.read(self.publisher.sent_lsn, at_most), self.clock.now_us())
        self.publisher.poll()

    def _has_more_to_send(self) -> bool:
        return self.publisher.sent_lsn < self.tables.log_sequence_number and self.publisher.room > 0

    def _report(self) -> None:
        now_s = self.clock.monotonic_s()
        if now_s - self._report_at_s < REPORT_INTERVAL_S:
            return
        self._report_at_s = now_s
        self._save_cursor()
        self._set_gauges()
        acknowledged = self.publisher.acknowledged_lsn
        if acknowledged < self.log.snapshot_lsn:
            self.readiness.reason = f"the snapshot: Kafka has {acknowledged} of {self.log.snapshot_lsn} rows"
        elif self.readiness.reason is not None:
            self.readiness.reason = None
            log.info("ready", committed_lsn=self.tables.log_sequence_number)
        if now_s - self._progress_at_s >= PROGRESS_INTERVAL_S:
            self._progress_at_s = now_s
            log.info("progress", committed_lsn=self.tables.log_sequence_number, acknowledged_lsn=acknowledged)

    def _set_gauges(self) -> None:
        for name, rows in self.tables.rows.items():
            self.metrics.rows.labels(name).set(len(rows))
        self.metrics.committed_lsn.set(self.tables.log_sequence_number)
        self.metrics.acknowledged_lsn.set(self.publisher.acknowledged_lsn)
        self.metrics.lag.set(self._lag())

    def _drain(self) -> None:
        deadline_s = self.clock.monotonic_s() + self.settings.drain_s
        while self._lag() and self.clock.monotonic_s() < deadline_s:
            self._publish()
            self.clock.sleep(0.0 if self._has_more_to_send() else DRAIN_WAIT_S)
        log.info("stopped", committed_lsn=self.tables.log_sequence_number, left_for_the_next_start=self._lag())

    def _save_cursor(self) -> None:
        if self.publisher.acknowledged_lsn > self.log.acknowledged_lsn:
            self.log.acknowledge(self.publisher.acknowledged_lsn)

    def _allowed(self) -> int:
        allowed = self.settings.backlog - self._lag()
        return min(allowed, self._left()) if self.settings.limit else allowed

    def _is_complete(self) -> bool:
        return self.settings.limit > 0 and self._left() <= 0 and self._lag() == 0

    def _left(self) -> int:
        return self.log.snapshot_lsn + self.settings.limit - self.tables.log_sequence_number

    def _lag(self) -> int:
        return self.tables.log_sequence_number - self.publisher.acknowledged_lsn
