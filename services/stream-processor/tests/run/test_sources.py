"""Topics that change while their queries run."""

from collections.abc import Iterable

import pytest
from confluent_kafka import KafkaException
from prometheus_client import CollectorRegistry
from structlog.testing import capture_logs

from stream_processor.metrics import Metrics
from stream_processor.pipeline.pipeline import Pipeline
from stream_processor.run.plan import UNSEEN, TopicState, plan, topics_of
from stream_processor.run.sources import TRANSACTIONS_S, SourceWatch
from stream_processor.run.topics import Waiting
from testkit.stream_processor.micro_batches import PipelineOf

ROWS = {"topic": "orders", "message": "statecast.orders.v1.Order", "format": "table", "values": "json"}


class Watched:
    """The queries of some pipelines on topics that had one partition each, and these topics' state at the broker."""

    def __init__(self, *pipelines: Pipeline) -> None:
        self.now = {name: TopicState("A", 1) for name in topics_of(pipelines)}
        self.plans = [each.at(self.now) for each in plan(pipelines, dict.fromkeys(self.now, 1))]
        self.waiting: dict[int, Waiting] = {}
        self.registry, self.time_s, self.error = CollectorRegistry(), 0.0, False
        self.watch = SourceWatch(
            self._states, lambda names: dict.fromkeys(names, self.waiting), Metrics(self.registry), lambda: self.time_s
        )

    def look(self, *ended: str) -> dict[str, str]:
        return self.watch.look(self.plans, ended)

    def _states(self, names: Iterable[str]) -> dict[str, TopicState]:
        if self.error:
            raise KafkaException("away")
        return {name: self.now[name] for name in names if name in self.now}


def test_a_topic_that_was_made_anew_ends_all_that_read_or_write_it(shipped: PipelineOf) -> None:
    watched = Watched(shipped("orders-by-key"), shipped("invoices-by-store"))

    assert watched.look() == {}
    del watched.now["orders"]
    assert watched.look() == watched.look("invoices-by-store") == {}
    assert watched.look("orders-by-key")["orders-by-key"].startswith("orders was deleted: ")
    watched.error = True
    assert watched.look() == {}
    assert watched.watch.notes == ["Kafka does not answer; the pipelines wait: away"]
    watched.error, watched.now["orders"] = False, TopicState("B", 1)
    reasons = watched.look()
    assert reasons.keys() == {"orders-by-key"}
    assert watched.watch.notes == []
    assert reasons["orders-by-key"].startswith("orders was deleted and recreated: ")
    watched.now |= {"orders": TopicState("A", 1), "invoices-by-store": TopicState("B", 1)}
    assert watched.look().keys() == {"invoices-by-store"}


def test_partitions_that_come_are_refused_where_they_change_the_order_or_the_place_of_a_key(
    shipped: PipelineOf,
) -> None:
    by_offset, by_log = shipped("orders-by-key", source=ROWS), shipped("invoices-with-store")
    watched = Watched(by_offset, by_log)

    watched.now |= {"orders": TopicState("A", 4), "invoices": TopicState("A", 4)}
    assert watched.look().keys() == {"orders-by-key"}
    assert "orders has 4 partitions and had 1: only the order of offsets" in watched.look()["orders-by-key"]
    watched.now |= {"orders": TopicState("A", 1), "stores-by-key": TopicState("A", 4)}
    assert watched.look().keys() == {"invoices-with-store"}
    assert watched.look()["invoices-with-store"].endswith("start it anew")
    watched.now |= {"stores-by-key": TopicState("A", 1), "orders-by-key": TopicState("A", 4)}
    assert watched.look().keys() == {"orders-by-key"}


@pytest.mark.parametrize("later", [TopicState("A", 4), TopicState("B", 1)], ids=["more partitions", "made anew"])
def test_a_table_that_is_another_one_is_joined_by_no_pipeline_until_the_process_starts_anew(
    shipped: PipelineOf, later: TopicState
) -> None:
    watched = Watched(shipped("invoices-with-store"))
    watched.look()
    watched.now["stores-by-key"] = later
    reasons = watched.look()

    watched.plans = [each.at(watched.now) for each in watched.plans]  # as of a file that was written anew

    assert watched.look() == reasons
    assert reasons["invoices-with-store"].endswith("start it anew")


def test_a_topic_that_the_acls_hide_says_nothing(shipped: PipelineOf) -> None:
    watched = Watched(shipped("orders-by-key"), shipped("invoices-by-store"))

    watched.now |= {"orders": UNSEEN, "invoices-by-store": TopicState("B", 1)}
    assert watched.look("orders-by-key").keys() == {"invoices-by-store"}


def test_a_table_without_state_reads_partitions_that_come(shipped: PipelineOf) -> None:
    source = {"topic": "invoices", "message": "statecast.sales.v1.Invoice", "format": "table", "values": "json"}
    watched = Watched(shipped("home-delivery", source=source))

    watched.now["invoices"] = TopicState("A", 4)
    assert watched.look() == {}


def test_a_transaction_that_is_open_at_two_looks_is_told_once(shipped: PipelineOf) -> None:
    watched = Watched(shipped("orders-by-key"))

    def look(waiting: dict[int, Waiting]) -> list[str]:
        watched.waiting = waiting
        with capture_logs() as logs:
            watched.look()
        watched.time_s += TRANSACTIONS_S
        return [each["reason"] for each in logs]

    assert look({3: Waiting(7, 1)}) == []
    [reason] = look({3: Waiting(7, 40)})
    assert reason.startswith("partition 3 of orders has an open transaction since offset 7: 40 records wait")
    assert watched.registry.get_sample_value("stream_processor_waiting_records", {"topic": "orders"}) == 40
    assert look({3: Waiting(7, 41)}) == []
    assert look({3: Waiting(90, 2)}) == []
    assert look({}) == []
    assert watched.registry.get_sample_value("stream_processor_waiting_records", {"topic": "orders"}) == 0


def test_an_open_transaction_is_told_of_no_more_once_no_pipeline_reads_its_topic(shipped: PipelineOf) -> None:
    watched = Watched(shipped("orders-by-key"), shipped("invoices-by-store"))
    watched.waiting = {3: Waiting(7, 40)}
    watched.look()
    watched.time_s += TRANSACTIONS_S
    watched.plans = watched.plans[1:]
    watched.look()

    assert watched.watch.waiting_records == {"invoices": 40}
    assert watched.registry.get_sample_value("stream_processor_waiting_records", {"topic": "orders"}) is None
