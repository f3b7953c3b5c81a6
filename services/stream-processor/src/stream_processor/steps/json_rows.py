"""Reads rows from the JSON of any maker, or names the form that the JSON has instead of a row's."""

from collections.abc import Iterator
from functools import reduce

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name that every Spark program uses

from stream_processor.steps.functions import Functions
from stream_processor.steps.json_texts import (
    DECLARED,
    MALFORMED,
    SCHEMA,
    declared_types,
    half_character_problem,
    json_names,
    object_of,
    read_json,
    read_tree,
    text_fields,
    trees_of,
    unavailable_problem,
)

DELETED, OPERATION = "__deleted", "__op"
"""Fields that Debezium's transform ExtractNewRecordState adds to a row: `true` or `d` say that the row is gone."""
WRAPPER = ("payload", "schema")
"""The fields of the object in which Connect's JsonConverter puts a row by default."""
EXTENDED = r'^\{\s*"(\$(?:oid|date|number\w+|binary|uuid|timestamp|regularExpression|symbol|code|minKey|maxKey))"'
"""The beginning of a value that MongoDB writes as an object, which may be taken for a text."""
MAX_SHOWN = 200
"""Most characters of the fields that a reason shows."""


def read_rows(records: DataFrame, row: Descriptor, functions: Functions) -> DataFrame:
    """Adds `decoded`, struct(row, payload, problem), `problem`, and `leaves`: whether the record says the row is gone.

    Fields of the JSON object have the names of the message's fields, or those that Protobuf gives them in JSON; others
    are left out, and null counts as missing.
    """
    read = _unwrapped(records, row)
    names, marks = json_names(row), [mark for mark in (DELETED, OPERATION) if mark not in row.fields_by_name]
    spelled = [name for several in names.values() for name in several]
    read = read.withColumn("__read", read_json(F.col("__json"), text_fields(*spelled, *marks)))
    texts = {name: F.coalesce(*map(F.col("__read").getField, several)) for name, several in names.items()}
    trees = {each.name: read_tree(texts[each.name], each, json_names) for each in trees_of(row)}
    read = read.withColumns({f"__tree_{name}": tree for name, tree in trees.items()})
    read = read.withColumn("__texts", F.struct(*[text.alias(name) for name, text in texts.items()]))
    # The names are only read of an object that lacks some.
    some_missing = reduce(Column.__or__, [F.col("__texts").getField(name).isNull() for name in texts])
    read = read.withColumn("__keys", F.when(some_missing, F.json_object_keys("__json")))
    values = {name: F.col(f"__tree_{name}.value") if name in trees else F.col(f"__texts.{name}") for name in names}
    whole = F.when(F.col("__read").isNotNull(), F.struct(*[value.alias(name) for name, value in values.items()]))
    leaves = F.coalesce(_leaves(marks), F.lit(False))
    read = read.withColumn("decoded", functions.row_from_texts(whole, F.col("__declared"), row.full_name))
    problems = F.coalesce(_object_problem(), F.when(~leaves, F.coalesce(*_row_problems(row))))
    return read.withColumns({"problem": problems, "leaves": leaves})


def _unwrapped(records: DataFrame, row: Descriptor) -> DataFrame:
    """Adds `__json`, the text of the row, and `__declared`, the types of the row's fields by a schema beside it."""
    text, nothing = F.col("value").cast("string"), F.lit(None).cast(DECLARED)
    if set(row.fields_by_name) & set(WRAPPER):
        return records.withColumns({"__json": text, "__wrapped": F.lit(False), "__declared": nothing})
    # Most rows do not hold these words, and need not be read twice.
    may_be = text.contains('"payload"') & text.contains('"schema"')
    wrapped = F.when(may_be, F.array_sort(F.json_object_keys(text)) == F.array(*map(F.lit, WRAPPER)))
    read = records.withColumn("__wrapped", F.coalesce(wrapped, F.lit(False)))
    read = read.withColumn("__outer", F.when(F.col("__wrapped"), read_json(text, text_fields(*WRAPPER))))
    own = {alias: name for name, several in json_names(row).items() for alias in several[1:]}
    declared = declared_types(read_json(F.col("__outer.schema"), SCHEMA).getField("fields"), own)
    return read.withColumns(
        {
            "__json": F.when(F.col("__wrapped"), F.col("__outer.payload")).otherwise(text),
            "__declared": F.when(F.col("__wrapped"), declared).otherwise(nothing),
        }
    )


def _leaves(marks: list[str]) -> Column:
    says = {DELETED: "true", OPERATION: "d"}
    marked = [F.coalesce(F.col("__read").getField(mark) == says[mark], F.lit(False)) for mark in marks]
    return reduce(Column.__or__, marked, F.lit(False))


def _object_problem() -> Column:
    """Finds why the value is no JSON object."""
    value, text = F.col("value").cast("string"), F.ltrim("__json")
    no_object = "the value is no JSON object"
    return F.coalesce(
        F.when(~F.is_valid_utf8(value), "the value is no UTF-8"),
        half_character_problem(value),
        F.when(
            F.col("__wrapped") & F.col("__json").isNull(), "payload is null: only a value that is null deletes a row"
        ),
        F.when(text.startswith("["), f"{no_object} but an array: one record must be one row"),
        F.when(text.startswith('"'), f"{no_object} but a text in quotes: is it JSON that was encoded twice?"),
        F.when(~text.startswith("{") | F.col("__read").getField(MALFORMED).isNotNull(), no_object),
    )


def _row_problems(row: Descriptor) -> Iterator[Column]:
    """Finds why the object is no row; each reason is null where it is one."""
    keys = F.col("__keys")
    for fields, reason in ENVELOPES.items():
        if not set(fields) & set(row.fields_by_name):
            yield F.when(reduce(Column.__and__, [F.array_contains(keys, each) for each in fields]), reason)
    nearly = F.coalesce(*[_misspelled(field.name, json_names(row)[field.name]) for field in row.fields])
    texts = [F.col("__texts").getField(field.name) for field in row.fields]
    shown = F.left(F.array_join(keys, ", "), F.lit(MAX_SHOWN))
    theirs = F.when(F.size(keys) > 0, F.concat(F.lit(": its fields are "), shown)).otherwise(": it is empty")
    known = F.array(*[F.lit(name) for several in json_names(row).values() for name in several])
    hint = F.coalesce(F.concat(F.lit("; "), nearly), F.lit(""))
    none = F.concat(F.lit(f"the JSON has none of the fields of {row.full_name}"), theirs, hint)
    yield F.when(F.coalesce(*texts).isNull() & ~F.arrays_overlap(keys, known), none)
    yield unavailable_problem(F.col("__texts"), row.fields_by_name)
    yield nearly
    for field in trees_of(row):
        if (message := object_of(field)) is not None:
            yield _empty_within(field, message)
    for field in row.fields:
        text = F.col("__texts").getField(field.name)
        extended = F.when(text.startswith("{"), F.regexp_extract(text, EXTENDED, 1))
        named = F.lit(f"{field.name} is in MongoDB's extended JSON, ")
        yield F.when(extended != "", F.concat(named, extended, F.lit(": write plain values")))
    for field in trees_of(row):
        malformed = F.col(f"__tree_{field.name}").getField(MALFORMED).isNotNull()
        yield F.when(malformed, f"{field.name} is no JSON that fits it")
    yield F.col("decoded.problem")


def _empty_within(field: FieldDescriptor, message: Descriptor) -> Column:
    """Finds why an object within the row has none of its message's fields, though it has others."""
    value, text = F.col(f"__tree_{field.name}.value"), F.col("__texts").getField(field.name)
    values = value if field.is_repeated else F.array(value)
    known = F.array(*[F.lit(name) for several in json_names(message).values() for name in several])

    def is_nothing(one: Column) -> Column:
        return F.coalesce(*[one.getField(each.name).cast("string") for each in message.fields]).isNull()

    def has_others(one: Column) -> Column:
        keys = F.json_object_keys(one)
        return (F.size(keys) > 0) & ~F.arrays_overlap(keys, known)

    # The objects are only read again where one may have no field of its message.
    texts = F.from_json(text, "array<string>") if field.is_repeated else F.array(text)
    wrong = F.when(F.exists(values, is_nothing), F.exists(texts, has_others))
    what = f"an element of {field.name}" if field.is_repeated else field.name
    return F.when(wrong, f"{what} has none of the fields of {message.full_name}, but others")


ENVELOPES = {
    ("op", "before"): "the value is a change by Debezium (before, after, op): read the topic by format: debezium-json",
    ("op", "after"): "the value is a change by Debezium (after, op): read the topic by format: debezium-json",
    ("specversion", "data"): "the value is an event in an envelope of CloudEvents: let the producer write data alone",
    ("specversion", "data_base64"): "the value is an event in an envelope of CloudEvents, whose data is no JSON",
}
"""The kind of an object that has all of these fields, of which its message has none."""


def _misspelled(name: str, names: tuple[str, ...]) -> Column:
    """Finds why a field of the message is missing, though the object has one of nearly that name."""
    missing = F.col("__texts").getField(name).isNull() & ~F.arrays_overlap("__keys", F.array(*map(F.lit, names)))
    letters = "[_ .-]*".join(name.replace("_", ""))
    lines = F.concat(F.lit("\n"), F.array_join("__keys", "\n"), F.lit("\n"))
    nearly = F.regexp_extract(lines, f"\n((?i)[_-]*{letters}[_-]*)\n", 1)
    reason = F.concat(F.lit("the JSON has the field "), nearly, F.lit(f", the message {name}: give both the same name"))
    return F.when(missing & (nearly != ""), reason)
