"""Gives a message's shape as a Spark type, the same as spark-protobuf's and as jvm/ makes the rows."""

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from stream_processor.definition.contract import TIMESTAMP
from stream_processor.errors import ContractError

_SCALARS: dict[int, DataType] = {
    FieldDescriptor.TYPE_DOUBLE: DoubleType(),
    FieldDescriptor.TYPE_FLOAT: FloatType(),
    FieldDescriptor.TYPE_INT32: IntegerType(),
    FieldDescriptor.TYPE_SINT32: IntegerType(),
    FieldDescriptor.TYPE_SFIXED32: IntegerType(),
    FieldDescriptor.TYPE_UINT32: LongType(),
    FieldDescriptor.TYPE_FIXED32: LongType(),
    FieldDescriptor.TYPE_INT64: LongType(),
    FieldDescriptor.TYPE_SINT64: LongType(),
    FieldDescriptor.TYPE_SFIXED64: LongType(),
    FieldDescriptor.TYPE_UINT64: DecimalType(20, 0),
    FieldDescriptor.TYPE_FIXED64: DecimalType(20, 0),
    FieldDescriptor.TYPE_BOOL: BooleanType(),
    FieldDescriptor.TYPE_STRING: StringType(),
    FieldDescriptor.TYPE_BYTES: BinaryType(),
    FieldDescriptor.TYPE_ENUM: StringType(),
}


def of(message: Descriptor, within: tuple[str, ...] = ()) -> StructType:
    """The struct of a message's fields in the order of their declaration.

    Raises ContractError for what a row cannot hold: maps, and messages that contain themselves (`within`: the messages
    on the way down).
    """
    if message.full_name in within:
        raise ContractError(f"{message.full_name} contains itself; a row cannot")
    inner = (*within, message.full_name)
    return StructType([StructField(field.name, _type(field, inner)) for field in message.fields])


def _type(field: FieldDescriptor, within: tuple[str, ...]) -> DataType:
    element = _element(field, within)
    return ArrayType(element, containsNull=False) if field.is_repeated else element


def _element(field: FieldDescriptor, within: tuple[str, ...]) -> DataType:
    message = field.message_type
    if message is None:
        return _SCALARS[field.type]
    if message.GetOptions().map_entry:
        raise ContractError(f"{field.full_name} is a map; a row cannot hold it")
    return TimestampType() if message.full_name == TIMESTAMP else of(message, within)
