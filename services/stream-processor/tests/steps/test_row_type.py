"""The shape of a message as a Spark type."""

from pathlib import Path

import pytest
from google.protobuf import text_format
from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet
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

from statecast.descriptors import MessageTypes
from stream_processor.errors import ContractError
from stream_processor.pipeline.fields import Contract
from stream_processor.steps.functions import fits, row_type
from testkit.stream_processor import sales

WITH_A_MAP = """
name: "m.proto" package: "m" syntax: "proto3"
message_type {
  name: "Mapped"
  field { name: "counts" number: 1 type: TYPE_MESSAGE label: LABEL_REPEATED type_name: ".m.Mapped.CountsEntry" }
  nested_type {
    name: "CountsEntry" options { map_entry: true }
    field { name: "key" number: 1 type: TYPE_STRING label: LABEL_OPTIONAL }
    field { name: "value" number: 2 type: TYPE_INT32 label: LABEL_OPTIONAL }
  }
}
message_type {
  name: "Tree"
  field { name: "branches" number: 1 type: TYPE_MESSAGE label: LABEL_REPEATED type_name: ".m.Tree" }
}
"""


def test_an_order_has_the_types_of_spark_protobuf(contract: Contract) -> None:
    order_type = row_type(contract.message("statecast.orders.v1.Order"))

    assert order_type.simpleString() == (
        "struct<order_id:string,customer_id:string,status:string,"
        "items:array<struct<item_id:string,quantity:int,unit_price_cents:bigint>>,total_cents:bigint,"
        "currency:string,placed_at:timestamp,updated_at:timestamp,estimated_delivery:string,tracking_number:string>"
    )


def test_a_text_that_is_a_decimal_is_one_in_spark(tmp_path: Path) -> None:
    contract = Contract(MessageTypes.read(sales.mount(tmp_path)).descriptor_set)

    assert row_type(contract.message(sales.ROW)).simpleString() == (
        "struct<sale_id:int,shop:string,price:decimal(12,2),amount:bigint,discounts:array<decimal(2,2)>,"
        "weight:double,tax:decimal(8,7)>"
    )


@pytest.mark.parametrize(("name", "problem"), [("m.Mapped", "m.Mapped.counts is a map"), ("m.Tree", "contains itself")])
def test_what_a_row_cannot_hold_is_refused(name: str, problem: str) -> None:
    file = text_format.Parse(WITH_A_MAP, FileDescriptorProto())
    contract = Contract(FileDescriptorSet(file=[file]).SerializeToString())

    with pytest.raises(ContractError, match=problem):
        row_type(contract.message(name))


@pytest.mark.parametrize(
    ("actual", "wanted", "fit"),
    [
        (StringType(), StringType(), True),
        (NullType(), StringType(), True),
        (IntegerType(), LongType(), True),
        (LongType(), DoubleType(), True),
        (FloatType(), DoubleType(), True),
        (DecimalType(10, 2), DoubleType(), True),
        (DecimalType(10, 2), DecimalType(12, 4), True),
        (DecimalType(12, 2), DecimalType(12, 4), False),
        (DecimalType(12, 3), DecimalType(12, 2), False),
        (DecimalType(12, 0), LongType(), False),
        (IntegerType(), DecimalType(12, 2), True),
        (IntegerType(), DecimalType(11, 2), False),
        (LongType(), DecimalType(21, 2), True),
        (LongType(), DecimalType(20, 0), False),  # that of a uint64, which nothing negative fits
        (DoubleType(), DecimalType(38, 2), False),
        (StringType(), DecimalType(12, 2), False),
        (ArrayType(IntegerType(), False), ArrayType(DecimalType(12, 2), False), True),
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
def test_a_type_fits_where_no_value_would_change(actual: DataType, wanted: DataType, fit: bool) -> None:
    assert fits(actual, wanted) is fit
