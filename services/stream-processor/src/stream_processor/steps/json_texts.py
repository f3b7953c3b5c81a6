"""Reads JSON with Spark's own from_json into texts, which lose nothing of texts and whole numbers.

A number with a point or an exponent that is no text in the JSON becomes that of a double: 17 digits stay.
"""

import json
import re
from base64 import b64encode
from collections.abc import Callable, Collection, Mapping

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812  the name that every Spark program uses
from pyspark.sql.types import ArrayType, DataType, StringType, StructField, StructType

from stream_processor.definition.contract import kind

MALFORMED = "__malformed"
"""The field that holds the whole text when it does not have the shape that it is read in."""
TYPE = "name: string, parameters: struct<scale: string>"
"""The part that is needed of a type in a schema of Connect."""
DECLARED = "array<struct<field:string,name:string,scale:string>>"
"""A schema's types of columns, for Functions.row_from_texts."""


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
DOUBLE = r"-?\d+\.\d+(?:E-?\d+)?"
"""A number as Java writes a double."""
NUMBER = r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?"
"""A number of JSON."""
NO_DIGIT = r"^-?[0.]+|[eE].*|[-.]"
"""The parts of a number that are none of its digits, zeros at its beginning among them."""
EXACT_DIGITS = 15
"""A double keeps so many digits of every number."""
MAY_LOSE_DIGITS = ("string", "integer", "decimal", "message")
"""The kinds of fields that hold numbers which are no doubles."""
MANY_DIGITS = " is a number with more digits than a double has, or too large for one: let the producer write it as text"


def text_fields(*names: str) -> StructType:
    """Returns the type of an object with these fields; a field's value is read as text, null when it is missing."""
    return StructType([StructField(name, StringType()) for name in names])


def unavailable_problem(texts: Column, fields: Collection[str], within: str = "") -> Column:
    """Names the first of the fields with a value that Debezium did not know; null when there is none."""
    named = [F.when(texts.getField(name).isin(*UNAVAILABLE), f"{within}{name}{NOT_IN_THE_LOG}") for name in fields]
    return F.coalesce(*named)


def half_character_problem(text: Column) -> Column:
    """Reports one half of a surrogate pair without the other, of which Spark would make a question mark."""
    is_lone = (text.contains("\\ud") | text.contains("\\uD")) & text.rlike(_LONE_SURROGATE)
    return F.when(is_lone, "the value has half of a character (a lone surrogate as \\ud800)")


def trees_of(row: Descriptor) -> list[FieldDescriptor]:
    """The fields that hold more than a value: JSON of their own, or text that holds it."""
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


def lost_digits_problem(
    texts: Column, row: Descriptor, json_text: Column, within: str = "", names: Names = own_names
) -> Column:
    """Names the first field with a number from which Spark has taken digits; null when there is none.

    `texts` were read from `json_text` by Spark, which writes a number with a point or an exponent anew, as a double.
    A number in another form than it had is looked up there, by the field's `names`. A field of type double loses
    nothing.
    """
    spelled = {name: "|".join(map(re.escape, several)) for name, several in names(row).items()}
    before = {name: f'"(?:{either})"\\s*:' for name, either in spelled.items()}
    before |= {field.name: r"[:,\[]" for field in trees_of(row)}
    named = [
        F.when(_has_lost(texts.getField(field.name), json_text, before[field.name]), f"{within}{field.name}")
        for field in row.fields
        if kind(field) in MAY_LOSE_DIGITS
    ]
    return F.concat(F.coalesce(F.lit(None).cast("string"), *named), F.lit(MANY_DIGITS))


def _has_lost(value: Column, json_text: Column, before: str) -> Column:
    """Tells whether a number of the value lacks digits that it has in the JSON, where it stands behind `before`."""
    written = F.regexp_extract_all(json_text, F.lit(rf"{before}\s*({NUMBER})"), F.lit(1))
    anew = F.filter(F.regexp_extract_all(value, F.lit(DOUBLE), F.lit(0)), lambda number: ~json_text.contains(number))
    # Java 17 may also write more digits than were read.
    lost = (F.size(anew) > 0) & F.exists(F.concat(anew, written), _has_many_digits)
    is_infinite = value.contains("Infinity") & ~json_text.contains("Infinity")
    return (value.contains(".") & lost) | is_infinite


def _has_many_digits(number: Column) -> Column:
    return F.length(F.rtrim(F.regexp_replace(number, NO_DIGIT, ""), F.lit("0"))) > EXACT_DIGITS


def read_tree(text: Column, field: FieldDescriptor, names: Names = own_names) -> Column:
    """struct(value, MALFORMED) of the field's JSON, which need not be an object."""
    framed = F.concat(F.lit('{"value":'), text, F.lit("}"))
    read = read_json(framed, StructType([StructField("value", json_shape(field, names))]))
    if not _has_several(field, names):
        return read
    value = _named(read.getField("value"), field, names)
    return F.struct(value.alias("value"), read.getField(MALFORMED).alias(MALFORMED))


def json_shape(field: FieldDescriptor, names: Names = own_names) -> DataType:
    """Returns the form of the field's JSON, all the way down; each value at the end of a path is text."""
    one: DataType = StringType()
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
    """The object in `text`, or its fields and MALFORMED as far as they could be read; null for a null text."""
    full = StructType([*schema.fields, StructField(MALFORMED, StringType())])
    return F.from_json(text, full, {"columnNameOfCorruptRecord": MALFORMED})
