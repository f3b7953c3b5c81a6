"""Rows that snapshots read beside the changes of open transactions, through the real flow in micro-batches."""

from collections.abc import Callable
from pathlib import Path

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
    truncated,
)

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

BY_KEY = {"source": POSITIONS, "group_by": "position_id", "keep": "latest", "sink": {"topic": "by-key"}}
CHANGED, OPEN, END_OF_LOG = 800, 808, 1_600
READS = [[read_by_snapshot(END_OF_LOG + 100 * number, "p")] for number in range(12)]
"""More batches of snapshots than numbers between two changes."""


@pytest.mark.parametrize(
    ("late", "left"),
    [
        (event("u", OPEN, after=position("p", "b", 2)), [position("p", "b", 2)]),
        (event("d", OPEN, before=position("p")), []),
        (truncated(OPEN), []),
    ],
    ids=["update", "delete", "truncate"],
)
def test_a_change_of_an_open_transaction_wins_however_often_its_row_was_read(
    shipped: Callable[..., Pipeline],
    tmp_path: Path,
    spark: SparkSession,
    functions: Functions,
    late: Event,
    left: list[dict[str, object]],
) -> None:
    batches = MicroBatches(tmp_path, shipped("us-share-holders", **BY_KEY), spark, functions)
    for each in [[created(CHANGED, "p")], *READS, [late]]:
        batches.add(encoded(each))
    batches.run()

    assert held(batches.written, "latest") == of_rows(left, "latest")
