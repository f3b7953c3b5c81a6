"""Rows that a snapshot reads beside changes of transactions that were open then, in one micro-batch."""

from collections.abc import Callable, Sequence
from pathlib import Path
from uuid import uuid4

import pytest
from pyspark.sql import SparkSession

from stream_processor.pipeline.pipeline import Pipeline
from stream_processor.steps.functions import Functions
from testkit.stream_processor.micro_batches import MicroBatches
from testkit.stream_processor.truncated_positions import (
    POSITIONS,
    Event,
    created,
    encoded,
    event,
    held,
    of_rows,
    position,
    read_by_snapshot,
)

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

OLD, NEW = position("p"), position("p", "b", 5)
READ = read_by_snapshot(48, "p")
"""OLD, read when the log ended at 48."""
OPEN_THEN = event("u", 40, OLD, NEW, hours=1)
"""A change of a transaction that ended after that, with a place in the log from before."""
NEW_WAS_READ = event("r", 48, after=NEW)
HISTORIES: dict[str, Sequence[Event]] = {
    "the row is known": [created(8, "p"), READ, OPEN_THEN],
    "the row is new": [READ, OPEN_THEN],
    "a change comes again behind it": [created(8, "p"), READ, OPEN_THEN, created(8, "p"), OPEN_THEN],
    "the snapshot has read what the change left": [created(8, "p"), OPEN_THEN, NEW_WAS_READ],
    "the change comes again behind that": [created(8, "p"), OPEN_THEN, NEW_WAS_READ, created(8, "p"), OPEN_THEN],
    "more snapshots": [created(8, "p"), READ, event("r", 56, after=OLD), OPEN_THEN, event("r", 64, after=NEW)],
}


@pytest.mark.parametrize("together", HISTORIES)
def test_a_row_ends_as_the_transaction_left_it(
    shipped: Callable[..., Pipeline], tmp_path: Path, spark: SparkSession, functions: Functions, together: str
) -> None:
    pipeline = shipped("us-share-holders", source=POSITIONS)
    played = MicroBatches(tmp_path / uuid4().hex, pipeline, spark, functions)
    played.add(encoded(HISTORIES[together]))
    played.run()

    assert held(played.written, "aggregate") == of_rows([NEW], "aggregate")
    assert played.outcomes["superseded_newer"] == 0
