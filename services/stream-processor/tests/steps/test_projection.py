"""Selecting: what only Spark finds wrong with an expression, and which types stand in for which."""

from collections.abc import Callable

import pytest
from pyspark.sql import DataFrame
from pyspark.sql.types import (
    ArrayType,
    DataType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    NullType,
    StringType,
    StructType,
)

from stream_processor.definition.pipeline import Pipeline
from stream_processor.errors import PipelineFileError
from stream_processor.steps.flow import written_records
from stream_processor.steps.functions import Functions
from stream_processor.steps.type_fit import fits


@pytest.mark.spark
@pytest.mark.parametrize(
    ("select", "told"),
    [
        ({"city": "my_function(currency)"}, "select.city: .*my_function"),
        ({"item_quantity": "total_amount_cents"}, "select.item_quantity: is bigint, the field needs int"),
        ({"city": "array(currency)"}, "select.city: is array<string>, the field needs string"),
    ],
)
def test_what_only_spark_can_tell_is_told_of_the_key(
    shipped: Callable[..., Pipeline],
    functions: Functions,
    records: Callable[..., DataFrame],
    select: dict[str, str],
    told: str,
) -> None:
    pipeline = shipped("masked-lines", select=select)

    with pytest.raises(PipelineFileError, match=f"masked-lines.yaml: {told}"):
        written_records(records(b""), pipeline, 4, 1, functions)


@pytest.mark.parametrize(
    ("found", "wanted", "fit"),
    [
        (StringType(), StringType(), True),
        (NullType(), StringType(), True),
        (IntegerType(), LongType(), True),
        (LongType(), DoubleType(), True),
        (FloatType(), DoubleType(), True),
        (DecimalType(10, 2), DoubleType(), True),
        (LongType(), IntegerType(), False),
        (DoubleType(), LongType(), False),
        (LongType(), StringType(), False),
        (ArrayType(LongType(), False), ArrayType(LongType(), False), True),
        (ArrayType(LongType(), True), ArrayType(LongType(), False), False),
        (StructType().add("a", IntegerType()), StructType().add("a", LongType()), True),
        (StructType().add("a", LongType()), StructType().add("b", LongType()), False),
        (StructType().add("a", LongType()), StructType().add("a", LongType()).add("b", LongType()), False),
    ],
)
def test_a_type_fits_where_no_value_would_change(found: DataType, wanted: DataType, fit: bool) -> None:
    assert fits(found, wanted) is fit
