"""Integers that do not fit are null, and everything else is Spark's."""

from collections.abc import Iterable
from decimal import Decimal

import pytest
from pyspark.errors import ParseException
from pyspark.sql import SparkSession

from stream_processor.spark_internals import exact

pytestmark = pytest.mark.timeout(600)

LARGEST = 2**63 - 1


BEYOND = (
    "large + 1",
    "-2 - large",
    "large * 2",
    "small * small",
    "1 + (large * 2) - large",
    "if(small > 0, large * small, 0)",
    "aggregate(items, 0L, (sum, item) -> sum + item.large)",
    "cast(repeat('9', 36) || '.99' as decimal(38, 2)) * 10",
    "cast(repeat('9', 36) || '.99' as decimal(38, 2)) + large",
    "cast(1000 as decimal(3, 0))",
    "cast(large as decimal(20, 2)) / 0",
)
"""Expressions with a result beyond their type."""
RESULTS: dict[str, object] = {
    "large + 0": LARGEST,
    "large - 1 + 1": LARGEST,
    "large * -1": -LARGEST,
    "large * cast(2 as decimal(20))": 2 * LARGEST,
    "cast(small as bigint) * small": 9,
    "large div 2": LARGEST // 2,
    "large div 0": None,
    "small / 2": 1.5,
    "transform(items, item -> item.large div 2)": [LARGEST // 2, 0],
    "concat(text, small + 1)": "text4",
    "concat('${env:HOME}', text)": "${env:HOME}text",
    "cast(date'2024-08-28' + interval 1 day as string)": "2024-08-29",
    "coalesce(large * 2, -1)": -1,
    "cast(large as decimal(20, 1)) * 2.5": Decimal(LARGEST) * 5 / 2,
    "cast(large as decimal(38, 2)) - 0.01": LARGEST - Decimal("0.01"),
    "cast(small as decimal(12, 2)) / 7": Decimal("0.428571"),
    "cast(2.5 as decimal(12, 2)) div 1": 2,
}


def computed(spark: SparkSession, expressions: Iterable[str], small: int) -> dict[str, object]:
    """Returns the results of SQL expressions on one row."""
    row = {"large": LARGEST, "small": small, "items": [{"large": LARGEST}, {"large": 1}], "text": "text"}
    frame = spark.createDataFrame([row], "large long, small int, items array<struct<large: long>>, text string")
    [results] = frame.select(*[exact(sql, spark) for sql in expressions]).collect()
    return dict(zip(expressions, results, strict=True))


def test_what_is_beyond_its_type_is_null_and_all_else_is_as_ever(spark: SparkSession) -> None:
    assert computed(spark, BEYOND, small=2**31 - 1) == dict.fromkeys(BEYOND)
    assert computed(spark, RESULTS, small=3) == RESULTS


def test_what_is_no_expression_is_refused(spark: SparkSession) -> None:
    with pytest.raises(ParseException):
        exact("large +", spark)
