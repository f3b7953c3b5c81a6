"""Reads JSON with Spark's own from_json into texts, which lose nothing: a number keeps all its digits."""

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812  the name that every Spark program uses
from pyspark.sql.types import ArrayType, DataType, StringType, StructField, StructType

from stream_processor.definition.contract import kind

MALFORMED = "__malformed"
"""The field that holds the whole text when it does not have the shape that it is read in."""


def texts(*names: str) -> StructType:
    """An object with these fields; what a field holds is read as text, and null when it is missing."""
    return StructType([StructField(name, StringType()) for name in names])


def shape(field: FieldDescriptor) -> DataType:
    """What the field's JSON looks like, all the way down; each value at the end of a path is text."""
    message = field.message_type
    one = StringType() if message is None or kind(field) == "timestamp" else _fields(message)
    return ArrayType(one) if field.is_repeated else one


def _fields(message: Descriptor) -> DataType:
    return StructType([StructField(field.name, shape(field)) for field in message.fields])


def read(text: Column, wanted: StructType) -> Column:
    """The object in `text`, or its fields and `__malformed` as far as they could be read; null for a null text."""
    schema = StructType([*wanted.fields, StructField(MALFORMED, StringType())])
    return F.from_json(text, schema, {"columnNameOfCorruptRecord": MALFORMED})


def read_value(text: Column, wanted: DataType) -> Column:
    """struct(value, __malformed) of JSON that need not be an object."""
    framed = F.concat(F.lit('{"value":'), text, F.lit("}"))
    return read(framed, StructType([StructField("value", wanted)]))
