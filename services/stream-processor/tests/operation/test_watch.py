"""Whether queries run."""

from collections.abc import Callable
from typing import Any, cast

import pytest
from prometheus_client import CollectorRegistry
from py4j.protocol import Py4JNetworkError

from stream_processor.definition.pipeline import Pipeline
from stream_processor.errors import QueryFailedError
from stream_processor.metrics import Metrics
from stream_processor.operation.health import Readiness
from stream_processor.operation.plan import plan
from stream_processor.operation.watch import WatchedQuery, look_at_all
from stream_processor.testing.fakes import FakeQuery, FakeTasks

PARTITIONS = {"orders": 4, "orders-by-key": 4, "orders.dead-letter": 1}


@pytest.fixture
def metrics() -> Metrics:
    return Metrics(CollectorRegistry())


@pytest.fixture
def watched(shipped: Callable[..., Pipeline], metrics: Metrics) -> Callable[..., WatchedQuery]:
    def make(query: FakeQuery, tasks: FakeTasks, **replaced: object) -> WatchedQuery:
        [planned, _] = plan([shipped("orders-by-key", **replaced)], PARTITIONS)
        return WatchedQuery(planned, cast(Any, query), tasks, metrics)

    return make


def test_it_is_ready_once_all_tasks_have_run_together_and_stays_so(
    watched: Callable[..., WatchedQuery], metrics: Metrics
) -> None:
    readiness, tasks = Readiness(metrics), FakeTasks(7)
    query = watched(FakeQuery([]), tasks)

    look_at_all([query], readiness)
    assert readiness.reason == "starting orders-by-key"
    tasks.count = 8
    look_at_all([query], readiness)
    assert readiness.reason is None
    tasks.count = 0
    look_at_all([query], readiness)
    assert readiness.reason is None


def test_a_micro_batch_query_has_started_when_it_waits_for_data(watched: Callable[..., WatchedQuery]) -> None:
    query = FakeQuery([])
    seen = watched(query, FakeTasks(0), trigger={"mode": "micro-batch"})

    seen.look()
    assert not seen.started
    query.status = {"message": "Waiting for data to arrive"}
    seen.look()
    assert seen.started


def test_the_end_of_a_query_is_told_in_one_line(watched: Callable[..., WatchedQuery]) -> None:
    error = RuntimeError("[STREAM_FAILED] Query [id = 1] terminated with exception: no disk\n at Some.where")

    with pytest.raises(QueryFailedError, match=r"^the query orders-by-key has ended: no disk$"):
        watched(FakeQuery([], error), FakeTasks(8)).look()


def test_the_end_of_the_jvm_is_told(watched: Callable[..., WatchedQuery]) -> None:
    with pytest.raises(QueryFailedError, match="JVM has ended"):
        watched(FakeQuery([]), FakeTasks(Py4JNetworkError("gone"))).look()
