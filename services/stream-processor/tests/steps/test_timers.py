"""Operators with state look for timers, after each line in real-time mode, only where windows end."""

from collections.abc import Iterator
from typing import Any, cast

import pytest
from pyspark.sql import DataFrame

from statecast_domains.directories import pipeline_files
from stream_processor.pipeline.pipeline import Pipeline
from stream_processor.steps.flow import written_records
from testkit.repository_files import DOMAINS
from testkit.stream_processor.micro_batches import PipelineOf
from testkit.stream_processor.one_batch import PARTITIONS, OneBatch

SHIPPED = [file.stem for file in pipeline_files(sorted(DOMAINS.glob("*/*.yaml")))]
EVENTS = {
    "topic": "invoices",
    "message": "statecast.sales.v1.Invoice",
    "format": "events",
    "deduplicate": {"by": "invoice_number", "within": "1h"},
}
ENDING = {"time": "created_at", "size": "1h", "lateness": "30m", "keep": "90d"}


def modes(pipeline: Pipeline, batch: OneBatch) -> list[Any]:
    """Returns Spark's time mode of each operator with state."""
    sources = [batch.records() for _ in pipeline.readers]
    return [*_modes(written_records(sources, pipeline, PARTITIONS, 1, batch.functions))]


def _modes(frame: DataFrame) -> Iterator[Any]:
    plans = [cast(Any, frame)._jdf.queryExecution().analyzed()]
    while plans:
        plan = plans.pop()
        plans += [plan.children().apply(number) for number in range(plan.children().size())]
        if plan.nodeName() == "TransformWithState":
            yield plan.timeMode()


def have_timers(modes: list[Any], batch: OneBatch) -> bool:
    """Returns whether Spark looks for timers: it compares the modes that have them with an operator's."""
    spark_modes = cast(Any, batch.spark)._jvm.org.apache.spark.sql.streaming.TimeMode
    return any(
        timed.equals(mode) for timed in (spark_modes.ProcessingTime(), spark_modes.EventTime()) for mode in modes
    )


@pytest.mark.parametrize("name", SHIPPED)
def test_no_shipped_pipeline_without_windows_that_end_looks_for_timers(
    shipped: PipelineOf, batch: OneBatch, name: str
) -> None:
    pipeline = shipped(name)
    window = pipeline.definition.window
    ends = window is not None and window.keep is not None

    assert have_timers(modes(pipeline, batch), batch) is ends


def test_members_of_events_that_may_come_twice_look_for_no_timers(shipped: PipelineOf, batch: OneBatch) -> None:
    looked_at = modes(shipped("invoices-by-store", source=EVENTS), batch)

    assert len(looked_at) > 0
    assert not have_timers(looked_at, batch)


def test_windows_of_events_that_may_come_twice_end_by_timers(shipped: PipelineOf, batch: OneBatch) -> None:
    pipeline = shipped("hourly-sales-by-store", source=EVENTS, window=ENDING)

    assert have_timers(modes(pipeline, batch), batch)
