"""Reads JSON with Spark's own from_json into texts, which lose nothing: a number keeps all its digits."""

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812  the name that every Spark program uses
from pyspark.sql.types import ArrayType, DataType, StringType, StructField, StructType

from stream_processor.definition.contract import kind

MALFORMED = "__malformed"
"""The field that holds the whole text when it does not have the shape that it is read in."""
DECLARED = "array<struct<field:string,name:string,scale:string>>"
"""What a schema says of columns, for Functions.row_from_texts."""


def text_fields(*names: str) -> StructType:
    """An object with these fields; what a field holds is read as text, and null when it is missing."""
    return StructType([StructField(name, StringType()) for name in names])


def trees_of(row: Descriptor) -> list[FieldDescriptor]:
    """The fields that hold more than a value: JSON of their own, or text that holds it."""
    return [field for field in row.fields if field.is_repeated or kind(field) == "message"]


def read_tree(text: Column, field: FieldDescriptor) -> Column:
    """struct(value, MALFORMED) of the field's JSON, which need not be an object."""
    framed = F.concat(F.lit('{"value":'), text, F.lit("}"))
    return read_json(framed, StructType([StructField("value", json_shape(field))]))


def json_shape(field: FieldDescriptor) -> DataType:
    """What the field's JSON looks like, all the way down; each value at the end of a path is text."""
    message = field.message_type
    one: DataType = StringType()
    if message is not None and kind(field) != "timestamp":
        one = StructType([StructField(inner.name, json_shape(inner)) for inner in message.fields])
    return ArrayType(one) if field.is_repeated else one


def read_json(text: Column, schema: StructType) -> Column:
    """The object in `text`, or its fields and MALFORMED as far as they could be read; null for a null text."""
    full = StructType([*schema.fields, StructField(MALFORMED, StringType())])
    return F.from_json(text, full, {"columnNameOfCorruptRecord": MALFORMED})
