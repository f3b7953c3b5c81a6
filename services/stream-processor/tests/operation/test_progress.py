"""What Spark tells, as metrics."""

import pytest
from prometheus_client import CollectorRegistry

from stream_processor.metrics import Metrics
from stream_processor.operation.progress import Progress


def told(batch: int, rows: int = 100) -> dict[str, object]:
    """A progress as Spark makes it, with two state partitions."""
    operator = {"numRowsTotal": 7, "memoryUsedBytes": 9, "commitTimeMs": 400, "numShufflePartitions": 2}
    durations = {"triggerExecution": 10_000, "walCommit": 20, "commitOffsets": 30}
    return {"batchId": batch, "numInputRows": rows, "durationMs": durations, "stateOperators": [operator]}


@pytest.fixture
def metrics() -> Metrics:
    return Metrics(CollectorRegistry())


def value(metrics: Metrics, name: str) -> float | None:
    return metrics.registry.get_sample_value(f"stream_processor_{name}", {"query": "q"})


def test_a_batch_is_counted(metrics: Metrics) -> None:
    Progress("q", metrics).tell(told(0))

    assert value(metrics, "checkpoints_total") == 1
    assert value(metrics, "input_rows_total") == 100
    assert value(metrics, "input_rows_per_second") == 10
    assert (value(metrics, "state_rows"), value(metrics, "state_memory_bytes")) == (7, 9)
    assert value(metrics, "checkpoint_seconds") == pytest.approx(0.25)


def test_the_same_batch_is_counted_once(metrics: Metrics) -> None:
    progress = Progress("q", metrics)
    for batch in (5, 5, 6):
        progress.tell(told(batch))

    assert value(metrics, "input_rows_total") == 200
    assert not progress.is_news(told(6))


def test_it_knows_whether_a_batch_was_missed(metrics: Metrics) -> None:
    progress = Progress("q", metrics)
    progress.tell(told(5))

    assert progress.follows(told(6))
    assert not progress.follows(told(7))


def test_a_real_time_batch_pauses_for_what_it_takes_beyond_its_time(metrics: Metrics) -> None:
    Progress("q", metrics, interval_s=9.5, clock=lambda: 1_700_000_000.0).tell(told(5))

    assert value(metrics, "checkpoint_pause_seconds") == pytest.approx(0.5)
    assert value(metrics, "last_checkpoint_timestamp_seconds") == 1_700_000_000
