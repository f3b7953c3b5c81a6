"""Kafka records as changes."""

from collections.abc import Callable

import pytest
from pyspark.sql import DataFrame

from stream_processor.decode import decode
from stream_processor.functions import Functions
from stream_processor.testing.changes import change, order

MESSAGE = "statecast.orders.v1.OrderChange"

pytestmark = pytest.mark.spark


def test_a_change_is_a_row_and_nothing_else_is(functions: Functions, records: Callable[..., DataFrame]) -> None:
    lines = decode(records(change(None, order(), 1), b"\xff", None), MESSAGE, functions).orderBy("offset").collect()

    assert [line.change is not None for line in lines] == [True, False, False]
    assert lines[0].change.after.order_id == "order-1"
    assert lines[0].problem is None
    assert lines[1].problem.startswith(f"not a {MESSAGE}: ")
    assert lines[2].problem == "the value is null"
