"""The simulator at work, with a real database file and a producer in memory."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from confluent_kafka import KafkaError
from prometheus_client import CollectorRegistry

from cdc_simulator.basis import Basis
from cdc_simulator.change_log import ChangeLog
from cdc_simulator.database import Database, create_if_new
from cdc_simulator.domain import Domain
from cdc_simulator.errors import PublishError
from cdc_simulator.metrics import Metrics
from cdc_simulator.pacing import Pace
from cdc_simulator.publisher import Publisher
from cdc_simulator.readiness import Readiness
from cdc_simulator.simulator import Bounds, Simulator
from cdc_simulator.tables import Tables
from cdc_simulator.testing import ManualClock, MemoryProducer
from statecast.orders.v1.order_pb2 import OrderChange


class World:
    """A simulator with all its parts, put together anew on the same file at each start."""

    def __init__(self, path: Path, domain: Domain, basis: Basis, bounds: Bounds, rate: float) -> None:
        self.clock = ManualClock()
        self.database = Database(path)
        create_if_new(self.database, domain, basis, self.clock.now_us())
        self.tables, self.log = Tables(self.database, domain), ChangeLog(self.database, domain)
        self.producer = MemoryProducer({})
        self.metrics = Metrics(CollectorRegistry())
        self.readiness = Readiness("starting")
        self.simulator = Simulator(
            domain,
            basis,
            self.tables,
            self.log,
            Publisher("", {"orders": "orders"}, 1, self.log.acknowledged_lsn, self.metrics, lambda _: self.producer),
            Pace(rate, self.clock.monotonic_s()),
            bounds,
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


class Worlds:
    """Makes worlds on one file, and closes them."""

    def __init__(self, path: Path, domain: Domain, basis: Basis) -> None:
        self._path, self._domain, self._basis = path, domain, basis
        self._open: list[World] = []

    def new(self, limit: int = 0, backlog: int = 10**6, rate: float = 100) -> World:
        self.close()
        self._open.append(World(self._path, self._domain, self._basis, Bounds(limit, backlog, drain_s=5), rate))
        return self._open[-1]

    def close(self) -> None:
        for world in self._open:
            world.close()


@pytest.fixture
def worlds(database_path: Path, orders: Domain, basis: Basis) -> Iterator[Worlds]:
    with closing(Worlds(database_path, orders, basis)) as worlds:
        yield worlds


def test_the_snapshot_comes_first_then_changes_at_the_rate(worlds: Worlds) -> None:
    world = worlds.new(rate=100)
    world.run(10)

    published = world.published()
    assert published == list(range(1, len(published) + 1))
    assert len(published) - 50 == pytest.approx(1000, abs=5)


def test_it_ends_by_itself_when_the_limit_is_reached_over_all_starts(worlds: Worlds) -> None:
    worlds.new(limit=300).run(1)
    last = worlds.new(limit=300)
    last.simulator.run(lambda: False)

    assert last.published()[-1] == 350
    assert worlds.new(limit=300).log.acknowledged_lsn == 350


def test_a_restart_begins_after_what_is_acknowledged(worlds: Worlds) -> None:
    first = worlds.new()
    first.run(1)
    second = worlds.new()
    second.run(1)

    assert second.published()[0] == first.published()[-1] + 1


def test_what_was_not_acknowledged_is_published_again(worlds: Worlds) -> None:
    first = worlds.new()
    first.producer.away = True
    first.run(1)
    second = worlds.new()
    second.run(1)

    assert first.log.acknowledged_lsn == 0
    assert second.published()[: len(first.published())] == first.published()


def test_the_log_keeps_only_what_is_not_acknowledged(worlds: Worlds) -> None:
    world = worlds.new()
    world.run(5)

    assert world.database.query("SELECT count(*) FROM change_log") == [(0,)]


def test_the_tables_rest_while_too_much_is_not_acknowledged(worlds: Worlds) -> None:
    world = worlds.new(backlog=200)
    world.producer.away = True
    world.run(60)

    assert world.tables.log_sequence_number == 200


def test_it_waits_for_acknowledgements_only_for_so_long_when_it_is_stopped(worlds: Worlds) -> None:
    world = worlds.new()
    world.producer.away = True
    started_s = world.clock.monotonic_s()
    world.run(1)

    assert world.clock.monotonic_s() - started_s == pytest.approx(6, abs=0.3)


def test_it_is_ready_once_kafka_has_the_snapshot(worlds: Worlds) -> None:
    world = worlds.new()
    world.producer.away = True
    world.run(1)
    before = world.readiness.reason
    world.producer.away = False
    world.run(1)

    assert before == "the snapshot: Kafka has 0 of 50 rows"
    assert world.readiness.reason is None


def test_a_refused_change_ends_it_with_the_cursor_before_the_change(worlds: Worlds) -> None:
    world = worlds.new()
    world.run(1)
    acknowledged = world.log.acknowledged_lsn
    world.producer.refusal = KafkaError(KafkaError.MSG_SIZE_TOO_LARGE)
    with pytest.raises(PublishError):
        world.run(1)

    assert worlds.new().log.acknowledged_lsn == acknowledged


def test_the_metrics_tell_what_happened(worlds: Worlds) -> None:
    world = worlds.new()
    world.run(10)
    value = world.metrics.registry.get_sample_value
    committed = [
        value("cdc_simulator_changes_committed_total", {"operation": operation}) or 0
        for operation in ("create", "update", "delete")
    ]

    assert sum(committed) == world.tables.log_sequence_number - 50
    assert value("cdc_simulator_changes_published_total", {"operation": "snapshot"}) == 50
    assert value("cdc_simulator_rows", {"table": "orders"}) == len(world.tables.rows["orders"])
    assert value("cdc_simulator_lag_changes") == 0
    assert value("cdc_simulator_acknowledged_lsn") == value("cdc_simulator_committed_lsn")
