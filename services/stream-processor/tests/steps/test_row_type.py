"""The shape of a message as a Spark type."""

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

from stream_processor.definition.contract import Contract
from stream_processor.errors import ContractError
from stream_processor.steps.functions import fits, row_type

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
