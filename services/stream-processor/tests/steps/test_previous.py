"""What the state remembers of rows, and for how long."""

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from statecast.change.v1.change_pb2 import OPERATION_SNAPSHOT
from stream_processor.definition.pipeline import Pipeline
from stream_processor.steps.functions import Functions
from stream_processor.testing.changes import change, order
from stream_processor.testing.micro_batches import MicroBatches
from stream_processor.testing.process import wait_until

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]


@pytest.fixture
def batches(
    tmp_path: Path, spark: SparkSession, functions: Functions, shipped: Callable[..., Pipeline]
) -> Callable[..., MicroBatches]:
    """Makes micro-batches of orders-by-customer that forget rows so soon."""

    def make(forget: str) -> MicroBatches:
        return MicroBatches(tmp_path, shipped("orders-by-customer", forget_deleted=forget), spark, functions)

    return make


def test_a_row_that_is_gone_is_remembered_for_a_while_only(batches: Callable[..., MicroBatches]) -> None:
    played = batches("1s")
    rows = [order(f"order-{number}") for number in range(10)]
    played.add(change(None, row, number).SerializeToString() for number, row in enumerate(rows, 1))
    played.run()
    lively = played.state_rows
    played.add(change(row, None, number).SerializeToString() for number, row in enumerate(rows[:9], 11))
    played.run()

    def forgotten() -> bool:
        played.add([change(None, order("order-9"), 10).SerializeToString()])
        played.run()
        return played.state_rows == 1

    assert lively == 10
    wait_until(forgotten, lambda: f"{played.state_rows} rows")


def test_duplicates_and_late_changes_write_nothing(batches: Callable[..., MicroBatches]) -> None:
    played = batches("1h")
    new, gone = change(None, order(), 5), change(order(), None, 9)
    played.add([new.SerializeToString()])
    played.add([gone.SerializeToString()])
    played.run()
    written = len(played.written)
    played.add(each.SerializeToString() for each in (new, change(None, order(second=1), 4), gone))
    played.run()

    assert written == 2
    assert len(played.written) == written


def test_a_change_without_before_takes_the_row_out_of_its_group(batches: Callable[..., MicroBatches]) -> None:
    played = batches("1h")
    blind = change(order(), order(customer="customer-2"), 2)
    blind.ClearField("before")
    blind.operation = OPERATION_SNAPSHOT
    played.add([change(None, order(), 1).SerializeToString()])
    played.add([blind.SerializeToString()])
    played.run()

    assert [(each.key[:10], each.value is None) for each in played.written] == [
        ("customer-1", False),
        ("customer-1", True),
        ("customer-2", False),
    ]
