"""The state of running queries, and the metrics that come from Spark's progress."""

from collections.abc import Callable, MutableMapping
from typing import Any, cast

import pytest
from py4j.protocol import Py4JNetworkError
from structlog.testing import capture_logs

from stream_processor.errors import RecordsGoneError, SparkLostError
from stream_processor.metrics import Metrics, Readiness
from stream_processor.run.plan import plan
from stream_processor.run.watch import WatchedQuery, look_at_all
from stream_processor.steps.outcomes import STATE, WITHHELD
from stream_processor.steps.windows import WINDOWS
from testkit.stream_processor.fakes import FakeQuery
from testkit.stream_processor.micro_batches import PipelineOf

RUN = FakeQuery([]).runId
PARTITIONS = {"orders": 4, "orders-by-key": 4, "orders.dead-letter": 1}


@pytest.fixture
def watched(shipped: PipelineOf, metrics: Metrics) -> Callable[..., WatchedQuery]:
    def make(query: FakeQuery, **replaced: object) -> WatchedQuery:
        [planned] = plan([shipped("orders-by-key", **replaced)], PARTITIONS)
        return WatchedQuery(planned, cast(Any, query), metrics)

    return make


def test_the_tasks_of_all_queries_are_asked_for_at_once(watched: Callable[..., WatchedQuery], metrics: Metrics) -> None:
    asked = list[int]()

    def ask() -> dict[str, int]:
        asked.append(1)
        return {RUN: 4}

    queries = [watched(FakeQuery([])), watched(FakeQuery([]))]
    look_at_all(queries, ask, Readiness(metrics))

    assert [each.started for each in queries] == [True, True]
    assert len(asked) == 1


def test_it_is_ready_once_all_tasks_have_run_together_and_stays_so(
    watched: Callable[..., WatchedQuery], metrics: Metrics
) -> None:
    readiness, running = Readiness(metrics), {RUN: 3}
    query = watched(FakeQuery([]))

    look_at_all([query], lambda: running, readiness)
    assert readiness.reason == "starting orders-by-key"
    running = {RUN: 4}
    look_at_all([query], lambda: running, readiness)
    assert readiness.reason is None
    running = {}
    look_at_all([query], lambda: running, readiness)
    assert readiness.reason is None


def test_a_micro_batch_query_has_started_when_it_waits_for_data(watched: Callable[..., WatchedQuery]) -> None:
    query = FakeQuery([])
    watched_query = watched(query, trigger={"mode": "micro-batch"})

    watched_query.look(0)
    assert not watched_query.started
    query.status = {"message": "Waiting for data to arrive"}
    watched_query.look(0)
    assert watched_query.started


def test_the_end_of_a_query_is_told_in_one_line(watched: Callable[..., WatchedQuery], metrics: Metrics) -> None:
    error = RuntimeError("[STREAM_FAILED] Query [id = 1] terminated with exception: no disk\n at Some.where")
    failed = watched(FakeQuery([], error))
    failed.look(4)

    assert str(failed.failure()) == "no disk"
    assert value(metrics, "query_up") == 0


@pytest.mark.parametrize(
    "reason",
    [
        "Job aborted due to stage failure: org.apache.kafka.clients.consumer.OffsetOutOfRangeException: offset=125",
        "Some data may have been lost because they are not available in Kafka any more;",
    ],
)
def test_records_that_are_gone_are_told_with_what_to_do(watched: Callable[..., WatchedQuery], reason: str) -> None:
    failed = watched(FakeQuery([], RuntimeError(reason)))
    failed.look(4)

    assert isinstance(failed.failure(), RecordsGoneError)
    assert "docs/runbook.md" in str(failed.failure())


def test_it_is_not_ready_while_no_query_runs_and_stays_ready_when_one_of_them_starts_again(
    watched: Callable[..., WatchedQuery], metrics: Metrics
) -> None:
    readiness = Readiness(metrics)
    look_at_all([], dict, readiness)
    assert readiness.reason == "no query runs"
    look_at_all([watched(FakeQuery([]))], lambda: {RUN: 4}, readiness)
    look_at_all([watched(FakeQuery([]))], lambda: {RUN: 0}, readiness)
    assert readiness.reason is None
    look_at_all([], dict, readiness)
    assert readiness.reason == "no query runs"


def test_the_end_of_the_jvm_is_told(watched: Callable[..., WatchedQuery], metrics: Metrics) -> None:
    def lost() -> dict[str, int]:
        raise Py4JNetworkError("gone")

    with pytest.raises(SparkLostError, match="JVM has ended"):
        look_at_all([watched(FakeQuery([]))], lost, Readiness(metrics))


def progress_of(batch: int, rows: int = 100) -> dict[str, object]:
    """Returns a progress as Spark makes it, with two state partitions."""
    operator = {"numRowsTotal": 7, "memoryUsedBytes": 9, "commitTimeMs": 400, "numShufflePartitions": 2}
    durations = {"triggerExecution": 10_000, "walCommit": 20, "commitOffsets": 30}
    source = {"endOffset": f'{{"orders": {{"0": {10 * batch}, "1": {batch}}}}}'}
    return {
        "batchId": batch,
        "numInputRows": rows,
        "durationMs": durations,
        "stateOperators": [operator],
        "sources": [source],
    }


def value(metrics: Metrics, name: str) -> float | None:
    return metrics.registry.get_sample_value(f"stream_processor_{name}", {"query": "orders-by-key"})


def test_a_batch_is_counted(watched: Callable[..., WatchedQuery], metrics: Metrics) -> None:
    watched(FakeQuery([progress_of(0)])).look(4)

    assert value(metrics, "checkpoints_total") == 1
    assert value(metrics, "input_rows_total") == 100
    assert value(metrics, "input_rows_per_second") == 10
    assert (value(metrics, "state_rows"), value(metrics, "state_memory_bytes")) == (7, 9)
    assert value(metrics, "checkpoint_seconds") == pytest.approx(0.25)


def look(watched: Callable[..., WatchedQuery], *observed: dict[str, object]) -> list[MutableMapping[str, Any]]:
    """Looks at a query after each of its batches, with its observed metrics; returns the log events."""
    query = FakeQuery([])
    watched_query = watched(query)
    with capture_logs() as events:
        for batch, metrics in enumerate(observed):
            query.recentProgress = [progress_of(batch) | {"observedMetrics": metrics}]
            watched_query.look(4)
        watched_query.look(4)
    return events


def test_a_truncation_is_told_and_its_rows_are_counted(watched: Callable[..., WatchedQuery], metrics: Metrics) -> None:
    events = look(watched, {STATE: {"truncated": 32, "rows_left": 7}}, {STATE: {"truncated": None, "rows_left": 0}})

    assert value(metrics, "truncated_rows_total") == 7
    assert [each["event"] for each in events].count("the source's table was truncated") == 1


def test_results_that_are_withheld_are_told_with_a_key(watched: Callable[..., WatchedQuery], metrics: Metrics) -> None:
    events = look(watched, {WITHHELD: {"results": 2, "key": "a"}}, {WITHHELD: {"results": 0, "key": None}})

    labels = {"pipeline": "orders-by-key"}
    assert metrics.registry.get_sample_value("stream_processor_withheld_results_total", labels) == 2
    [line] = [each for each in events if "withheld" in each["event"]]
    assert (line["key"], line["results"]) == ("a", 2)


def test_windows_that_have_ended_and_changes_that_came_late_for_them_are_counted(
    watched: Callable[..., WatchedQuery], metrics: Metrics
) -> None:
    look(watched, {WINDOWS: {"ended": 3, "late": 2}}, {WINDOWS: {"ended": 0, "late": None}})

    assert (value(metrics, "ended_windows_total"), value(metrics, "late_window_changes_total")) == (3, 2)


def test_outcomes_are_counted_and_a_log_that_runs_backwards_is_told_once_a_look(
    watched: Callable[..., WatchedQuery], metrics: Metrics
) -> None:
    behind = {"applied": 4, "superseded_newer": 1, "truncated": None}
    events = look(watched, {"read0": {"set_aside": 3, "passed_over": 2}, STATE: behind})

    def records(outcome: str) -> float | None:
        labels = {"pipeline": "orders-by-key", "outcome": outcome}
        return metrics.registry.get_sample_value("stream_processor_records_total", labels)

    counts = [records(each) for each in ("applied", "superseded_newer", "set_aside", "passed_over", "duplicate")]
    assert counts == [4, 1, 3, 2, 0]
    [line] = [each for each in events if "source.epoch" in each["event"]]
    assert (line["pipeline"], line["records"]) == ("orders-by-key", 1)


@pytest.mark.parametrize(
    ("ends", "checkpointed"),
    [
        (['{"orders": {"0": 60, "1": 6}}'], {"orders": {0: 60, 1: 6}}),
        (['{"stores": {"0": 7}}', '{"sales": {"0": 9}}'], {"stores": {0: 7}, "sales": {0: 9}}),
        (["null"], {}),
    ],
    ids=["one-topic", "both-tables-of-a-join", "a-report-without-offsets"],
)
def test_it_knows_where_a_replay_would_begin(
    watched: Callable[..., WatchedQuery], ends: list[str], checkpointed: dict[str, dict[int, int]]
) -> None:
    sources = [{"endOffset": each} for each in ends]
    query = watched(FakeQuery([progress_of(5), {**progress_of(6), "sources": sources}]))
    before = query.checkpointed
    query.look(4)

    assert (before, query.checkpointed) == ({}, checkpointed)
    assert query.has_checkpointed(checkpointed)
    assert not query.has_checkpointed({**checkpointed, "orders": {0: 61}})


def test_each_batch_is_counted_once_also_those_between_two_looks(
    watched: Callable[..., WatchedQuery], metrics: Metrics
) -> None:
    query = FakeQuery([])
    watched_query = watched(query)
    for batches in ((5,), (5,), (5, 6, 7), (7,)):
        query.recentProgress = [*map(progress_of, batches)]
        watched_query.look(4)

    assert (value(metrics, "checkpoints_total"), value(metrics, "input_rows_total")) == (3, 300)


def test_a_real_time_batch_pauses_for_what_it_takes_beyond_its_time(
    watched: Callable[..., WatchedQuery], metrics: Metrics
) -> None:
    query = watched(FakeQuery([progress_of(5)]), trigger={"checkpoint": "9500ms"})
    query.clock = lambda: 1_700_000_000.0

    query.look(4)

    assert value(metrics, "checkpoint_pause_seconds") == pytest.approx(0.5)
    assert value(metrics, "last_checkpoint_timestamp_seconds") == 1_700_000_000
