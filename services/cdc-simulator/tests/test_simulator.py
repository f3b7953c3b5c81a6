"""The simulator at work, with a real database file and a producer in memory."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from confluent_kafka import KafkaError
from prometheus_client import CollectorRegistry

from cdc_simulator.database import Database, create_if_new
from cdc_simulator.domain import DatabaseParameters, Domain
from cdc_simulator.errors import PublishError
from cdc_simulator.metrics import Metrics, Readiness
from cdc_simulator.publication import PublishedLog
from cdc_simulator.publisher import Publisher
from cdc_simulator.settings import Settings
from cdc_simulator.simulator import Simulator
from cdc_simulator.tables import ChangeLog, Tables
from statecast.orders.v1.order_pb2 import OrderChange
from testkit.cdc_simulator import ManualClock, MemoryProducer


class SimulatorRig:
    """A simulator with all its parts, put together anew on the same file at each start."""

    def __init__(self, path: Path, domain: Domain, parameters: DatabaseParameters, settings: Settings) -> None:
        self.clock = ManualClock()
        self.database = Database(path)
        create_if_new(self.database, domain, parameters, self.clock.now_us())
        self.tables, self.log = Tables(self.database, domain), ChangeLog(self.database, domain)
        self.producer = MemoryProducer()
        self.metrics = Metrics(CollectorRegistry())
        self.readiness = Readiness("starting")
        start = 1, self.log.acknowledged_lsn
        publisher = Publisher("", {"orders": "orders"}, *start, self.metrics, lambda *_: self.producer)
        self.simulator = Simulator(
            domain,
            parameters,
            self.tables,
            PublishedLog(self.log, publisher, self.clock),
            settings,
            self.readiness,
            self.metrics,
            self.clock,
        )

    def close(self) -> None:
        self.database.close()

    def run(self, seconds: float) -> None:
        end_s = self.clock.monotonic_s() + seconds
        self.simulator.run(lambda: self.clock.monotonic_s() >= end_s)

    def published(self) -> list[int]:
        return [OrderChange.FromString(value).source.log_sequence_number for _, value, _ in self.producer.records]


class SimulatorStarts:
    """Starts simulators on one file, one after the other, and closes them."""

    def __init__(self, path: Path, domain: Domain, parameters: DatabaseParameters) -> None:
        self._path, self._domain, self._parameters = path, domain, parameters
        self._open: list[SimulatorRig] = []

    def new(self, limit: int = 0, backlog: int = 10**6, rate: float = 100) -> SimulatorRig:
        self.close()
        settings = Settings(limit=limit, backlog=backlog, drain_s=5, rate=rate)
        self._open.append(SimulatorRig(self._path, self._domain, self._parameters, settings))
        return self._open[-1]

    def close(self) -> None:
        for rig in self._open:
            rig.close()


@pytest.fixture
def starts(database_path: Path, orders: Domain, parameters: DatabaseParameters) -> Iterator[SimulatorStarts]:
    with closing(SimulatorStarts(database_path, orders, parameters)) as starts:
        yield starts


def test_the_snapshot_comes_first_then_changes_at_the_rate(starts: SimulatorStarts) -> None:
    rig = starts.new(rate=100)
    rig.run(10)

    published = rig.published()
    assert published == list(range(1, len(published) + 1))
    assert len(published) - 50 == pytest.approx(1000, abs=5)


def test_it_ends_by_itself_when_the_limit_is_reached_over_all_starts(starts: SimulatorStarts) -> None:
    starts.new(limit=300).run(1)
    last = starts.new(limit=300)
    last.simulator.run(lambda: False)

    assert last.published()[-1] == 350
    assert starts.new(limit=300).log.acknowledged_lsn == 350


def test_a_restart_begins_after_what_is_acknowledged(starts: SimulatorStarts) -> None:
    first = starts.new()
    first.run(1)
    second = starts.new()
    second.run(1)

    assert second.published()[0] == first.published()[-1] + 1


def test_what_was_not_acknowledged_is_published_again(starts: SimulatorStarts) -> None:
    first = starts.new()
    first.producer.away = True
    first.run(1)
    second = starts.new()
    second.run(1)

    assert first.log.acknowledged_lsn == 0
    assert second.published()[: len(first.published())] == first.published()


def test_the_log_keeps_only_what_is_not_acknowledged(starts: SimulatorStarts) -> None:
    rig = starts.new()
    rig.run(5)

    assert rig.database.query("SELECT count(*) FROM change_log") == [(0,)]


def test_the_tables_rest_while_too_much_is_not_acknowledged(starts: SimulatorStarts) -> None:
    rig = starts.new(backlog=200)
    rig.producer.away = True
    rig.run(60)

    assert rig.tables.log_sequence_number == 200


def test_it_waits_for_acknowledgements_only_for_so_long_when_it_is_stopped(starts: SimulatorStarts) -> None:
    rig = starts.new()
    rig.producer.away = True
    started_s = rig.clock.monotonic_s()
    rig.run(1)

    assert rig.clock.monotonic_s() - started_s == pytest.approx(6, abs=0.3)


def test_it_is_ready_once_kafka_has_the_snapshot(starts: SimulatorStarts) -> None:
    rig = starts.new()
    rig.producer.away = True
    rig.run(1)
    before = rig.readiness.reason
    rig.producer.away = False
    rig.run(1)

    assert before == "the snapshot: Kafka has 0 of 50 rows"
    assert rig.readiness.reason is None


def test_a_refused_change_ends_it_with_the_cursor_before_the_change(starts: SimulatorStarts) -> None:
    rig = starts.new()
    rig.run(1)
    acknowledged = rig.log.acknowledged_lsn
    rig.producer.refusal = KafkaError(KafkaError.MSG_SIZE_TOO_LARGE)
    with pytest.raises(PublishError):
        rig.run(1)

    assert starts.new().log.acknowledged_lsn == acknowledged


def test_the_metrics_tell_what_happened(starts: SimulatorStarts) -> None:
    rig = starts.new()
    rig.run(10)
    value = rig.metrics.registry.get_sample_value
    committed = [
        value("cdc_simulator_changes_committed_total", {"operation": operation}) or 0
        for operation in ("create", "update", "delete")
    ]

    assert sum(committed) == rig.tables.log_sequence_number - 50
    assert value("cdc_simulator_changes_published_total", {"operation": "snapshot"}) == 50
    assert value("cdc_simulator_rows", {"table": "orders"}) == len(rig.tables.rows["orders"])
    assert value("cdc_simulator_lag_changes") == 0
    assert value("cdc_simulator_acknowledged_lsn") == value("cdc_simulator_committed_lsn")
