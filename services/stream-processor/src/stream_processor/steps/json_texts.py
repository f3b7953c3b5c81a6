"""Reads JSON into texts, which lose nothing of it: a number keeps all its digits."""

import json
from base64 import b64encode
from collections.abc import Callable, Collection, Mapping

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F  # noqa: N812  the name that every Spark program uses
from pyspark.sql.types import ArrayType, DataType, MapType, StringType, StructField, StructType

from stream_processor.pipeline.fields import kind
from stream_processor.spark_internals import java_column

MALFORMED = "__malformed"
"""The field that holds the whole text when it does not have the shape that it is read in."""
DECLARED = "array<struct<field:string,name:string,scale:string>>"
"""A schema's types of columns, for Functions.row_from_texts."""


_TEXT = StringType()
_TYPE = (StructField("name", _TEXT), StructField("parameters", StructType([StructField("scale", _TEXT)])))
_COLUMN = StructType([StructField("field", _TEXT), *_TYPE, StructField("items", StructType([*_TYPE]))])
SCHEMA = StructType([StructField("fields", ArrayType(_COLUMN))])
"""The part that is needed of a row's schema, as Connect writes it."""
_PLACEHOLDER = b"__debezium_unavailable_value"
_PLACEHOLDER_AS_UUID = "b68a35a7-17ad-35b3-af2a-ae46edb4545a"
_PLACEHOLDER_AS_BYTES = b64encode(_PLACEHOLDER).decode()
UNAVAILABLE = (
    _PLACEHOLDER.decode(),
    _PLACEHOLDER_AS_BYTES,
    *(
        json.dumps(form, separators=(",", ":"))
        for form in (
            [_PLACEHOLDER.decode()],
            [_PLACEHOLDER_AS_BYTES],
            [_PLACEHOLDER_AS_UUID],
            list(_PLACEHOLDER),
            {_PLACEHOLDER.decode(): _PLACEHOLDER.decode()},
        )
    ),
)
"""The texts of a value that the log did not have for Debezium, by the column's type: of texts; of bytes; of arrays of
texts, bytes, ids, integers and dates; of hstore. Columns of other types are NULL then."""
_HIGH, _LOW = (rf"\\u[dD]{digit}[0-9a-fA-F]{{2}}" for digit in ("[89abAB]", "[c-fC-F]"))
_LONE_SURROGATE = rf"(?<!\\)(?:\\\\)*(?:{_HIGH}(?!{_LOW})|(?<!{_HIGH}){_LOW})"
"""A surrogate as JSON writes it, with a backslash that is not itself escaped, without the other half of its pair."""
NOT_IN_THE_LOG = (
    " is not in the database's log, because it is large and did not change: set REPLICA IDENTITY FULL on the table, "
    "or in MySQL and MariaDB binlog_row_image=FULL"
)


def text_fields(*names: str) -> StructType:
    """Returns the type of an object with these fields; a field's value is read as text, null when it is missing."""
    return StructType([StructField(name, _TEXT) for name in names])


def unavailable_problem(texts: Column, fields: Collection[str], within: str = "") -> Column:
    """Names the first of the fields with a value that Debezium did not know; null when there is none."""
    named = [F.when(texts.getField(name).isin(*UNAVAILABLE), f"{within}{name}{NOT_IN_THE_LOG}") for name in fields]
    return F.coalesce(*named)


def half_character_problem(text: Column) -> Column:
    """Reports one half of a surrogate pair without the other, of which Spark would make a question mark."""
    is_lone = (text.contains("\\ud") | text.contains("\\uD")) & text.rlike(_LONE_SURROGATE)
    return F.when(is_lone, "the value has half of a character (a lone surrogate as \\ud800)")


def trees_of(row: Descriptor) -> list[FieldDescriptor]:
    """Returns the fields that hold more than a value: JSON of their own, or text that holds it."""
    return [field for field in row.fields if field.is_repeated or kind(field) == "message"]


Names = Callable[[Descriptor], Mapping[str, tuple[str, ...]]]
"""The names that each of a message's fields may have in JSON; the first that is there counts."""


def own_names(message: Descriptor) -> dict[str, tuple[str, ...]]:
    """Returns the fields' names alone."""
    return {field.name: (field.name,) for field in message.fields}


def json_names(message: Descriptor) -> dict[str, tuple[str, ...]]:
    """Returns the fields' names, and Protobuf's names of them in JSON, unless another field has nearly that name."""
    taken = [name.lower() for name in message.fields_by_name]
    return {
        field.name: (field.name, *([] if field.json_name.lower() in taken else [field.json_name]))
        for field in message.fields
    }


def read_tree(text: Column, field: FieldDescriptor, names: Names = own_names) -> Column:
    """Returns struct(value, MALFORMED) of the field's JSON, which need not be an object."""
    read = read_json(_framed(text), StructType([StructField("value", json_shape(field, names))]))
    if not _has_several(field, names):
        return read
    value = _named(read.getField("value"), field, names)
    return F.struct(value.alias("value"), read.getField(MALFORMED).alias(MALFORMED))


def read_map(text: Column) -> Column:
    """Returns struct(value, MALFORMED) of the object in `text`: its values as texts, in the order of their names."""
    return read_json(_framed(text), StructType([StructField("value", MapType(_TEXT, _TEXT))]))


def _framed(text: Column) -> Column:
    return F.concat(F.lit('{"value":'), text, F.lit("}"))


def json_shape(field: FieldDescriptor, names: Names = own_names) -> DataType:
    """Returns the form of the field's JSON, all the way down; each value at the end of a path is text."""
    one: DataType = _TEXT
    if (message := object_of(field)) is not None:
        several = names(message)
        inner = [(name, each) for each in message.fields for name in several[each.name]]
        one = StructType([StructField(name, json_shape(each, names)) for name, each in inner])
    return ArrayType(one) if field.is_repeated else one


def object_of(field: FieldDescriptor) -> Descriptor | None:
    """Returns the message of a field that is an object in JSON."""
    return None if kind(field) == "timestamp" else field.message_type


def _has_several(field: FieldDescriptor, names: Names) -> bool:
    message = object_of(field)
    if message is None:
        return False
    several = names(message)
    return any(len(several[each.name]) > 1 or _has_several(each, names) for each in message.fields)


def _named(value: Column, field: FieldDescriptor, names: Names) -> Column:
    """Returns the value with one field per field of its message, all the way down."""
    message = object_of(field)
    if message is None or not _has_several(field, names):
        return value
    several = names(message)

    def one(value: Column) -> Column:
        read = {each: F.coalesce(*map(value.getField, several[each.name])) for each in message.fields}
        fields = [_named(text, each, names).alias(each.name) for each, text in read.items()]
        return F.when(value.isNotNull(), F.struct(*fields))

    return F.transform(value, one) if field.is_repeated else one(value)


def declared_types(fields: Column, own: Mapping[str, str] | None = None) -> Column:
    """Returns the types of fields by a schema of Connect, for an array those of its elements; null without a schema.

    The type of the column is DECLARED. `own` has the names of the message's fields by others that the schema may have
    for them.
    """
    pairs = [F.lit(text) for pair in (own or {}).items() for text in pair]

    def declared(each: Column) -> Column:
        name = each.getField("field")
        if pairs:
            name = F.coalesce(F.try_element_at(F.create_map(*pairs), name), name)
        scale = _either(each, lambda type_: type_.getField("parameters").getField("scale"))
        return F.struct(
            name.alias("field"), _either(each, lambda type_: type_.getField("name")).alias("name"), scale.alias("scale")
        )

    return F.transform(fields, declared)


def _either(column: Column, of: Callable[[Column], Column]) -> Column:
    """Applies `of` to the type of the column, or to that of its elements where the first result is null."""
    return F.coalesce(of(column), of(column.getField("items")))


def read_json(text: Column, schema: StructType) -> Column:
    """Returns the object in `text`, or its fields and MALFORMED as far as they could be read (JsonTexts.java).

    Null for a null text.
    """
    full = StructType([*schema.fields, StructField(MALFORMED, _TEXT)])
    return java_column(SparkSession.active(), "jsonTexts", [full], [text])
