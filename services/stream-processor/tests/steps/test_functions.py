"""The Java functions in a real Spark session."""

from collections.abc import Callable

import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name that every Spark program uses

from statecast.orders.v1.order_pb2 import OrderChange
from stream_processor.steps.functions import Functions
from testkit.stream_processor.changes import change, order

MESSAGE = "statecast.orders.v1.OrderChange"

pytestmark = pytest.mark.spark


def test_what_is_decoded_encodes_to_the_same(functions: Functions, records: Callable[..., DataFrame]) -> None:
    sent = change(order(items=("item-1", "item-2")), order(second=1.000001), sequence=7)
    decoded = records(sent).select(functions.decode_change(F.col("value"), MESSAGE).alias("decoded"))

    [line] = decoded.select(functions.encode(F.col("decoded.row"), MESSAGE).alias("value")).collect()

    assert OrderChange.FromString(bytes(line.value)) == sent


def test_a_record_is_decoded_once_however_often_its_row_is_used(
    functions: Functions, records: Callable[..., DataFrame]
) -> None:
    decoded = records(b"").withColumn("decoded", functions.decode_change(F.col("value"), MESSAGE))
    used = decoded.where("decoded.problem is null").select("decoded.row.after", "decoded.row.before")

    plan = used._jdf.queryExecution().optimizedPlan().toString()

    assert plan.count(f", {MESSAGE}, ") == 1


@pytest.mark.parametrize(("key", "partition"), [("abc", 3), ("foobar", 2), ("21", 0)])
def test_the_partition_is_kafkas(
    functions: Functions, records: Callable[..., DataFrame], key: str, partition: int
) -> None:
    [line] = records(b"").select(functions.kafka_partition(F.lit(key).cast("binary"), 4).alias("n")).collect()

    assert line.n == partition
