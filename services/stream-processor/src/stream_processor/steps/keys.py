"""Forms the keys under which a row stands on the keyed topic, and finds rows that have none."""

from collections.abc import Callable, Sequence
from functools import partial, reduce

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812  the name that every Spark program uses

from stream_processor.pipeline.fields import FieldPath, KeyPaths
from stream_processor.pipeline.pipeline import Pipeline
from stream_processor.steps.foreign_forms import key_form

NUL = "\0"
TRUNCATE = "OPERATION_TRUNCATE"
"""The `change.operation` of a truncation, which names no row and reaches every partition of the state (ADR 0028).

The contract has none such: it goes into no record.
"""
MARK = "\0"
"""The beginning of a truncation line's `primary_key`, and of no row's (PartitionKeys.java)."""
RFC3339 = "yyyy-MM-dd'T'HH:mm:ss.SSSSSS'Z'"
"""UTC with six decimals: 27 characters that sort by time. The session's time zone must be UTC."""
FIRST_TIME, LAST_TIME = -62_135_596_800_000_000, 253_402_300_799_999_999
"""The times that RFC3339 and a Timestamp of the contract can hold, in microseconds since 1970: the years 1 to 9999."""
BETWEEN_VALUES = ":"
"""Stands between the values of a key of several columns. In a value it is written `\\:`, and a backslash `\\\\`."""
ONE_VALUE = r"(?s)((?:[^:\\]|\\.)++)"
MAX_PART = 1_024
"""Characters of one part of a key; the edges take no longer ones either."""
INTEGER_WIDTH = 19
TOO_LONG = f" has more than {MAX_PART:,} characters, a key takes no more"


def row_keys(row: Column, group: KeyPaths, tail: Sequence[Column] = ()) -> Column:
    """Returns the row's keys as texts, one per group that it is in: the group, and the `tail` behind it.

    A row with a null group is in none.
    """
    nothing = F.array().cast("array<string>")
    if not group.repeated:
        key = F.concat(key_text(row, group), *tail)
        return F.when(key.isNotNull(), F.array(key)).otherwise(nothing)
    groups = F.array_distinct(element_texts(row, group.paths[0]))
    keys = F.array_compact(F.transform(groups, lambda each: F.concat(each, *tail)))
    return F.when(row.isNotNull(), keys).otherwise(nothing)


def is_truncation() -> Column:
    return F.col("change.operation") == TRUNCATE


def key_text(row: Column, key: KeyPaths) -> Column:
    """Joins the values at the key's paths to one text, null if any of them is; other values give another text."""
    return joined([single(row, path) for path in key.paths])


def joined(values: Sequence[Column]) -> Column:
    """Returns the texts of a key's columns as one, by the rule of BETWEEN_VALUES; a single one stays as it is."""
    if len(values) == 1:
        return values[0]
    first, *others = [escaped(each) for each in values]
    return reduce(lambda text, value: F.concat(text, F.lit(BETWEEN_VALUES), value), others, first)


def escaped(value: Column) -> Column:
    """Returns the text of one of several values of a key."""
    doubled = F.replace(value, F.lit("\\"), F.lit("\\\\"))
    return F.replace(doubled, F.lit(BETWEEN_VALUES), F.lit(f"\\{BETWEEN_VALUES}"))


def values_of(text: Column, key: KeyPaths) -> list[Column]:
    """Returns the values that key_text has joined to `text`, one per path, none of them empty."""
    if len(key.paths) == 1:
        return [text]
    values = F.regexp_extract_all(text, F.lit(ONE_VALUE), 1)
    return [F.regexp_replace(values.getItem(place), r"(?s)\\(.)", "$1") for place in range(len(key.paths))]


def row_identity(side: str, pipeline: Pipeline) -> Column:
    """Returns the text that tells the row in `change.before` or `change.after` from others; null when there is no row.

    It is that of the connector's record key where the file does not say the row's key. A table's row has that of its
    record, which is there even when the row is deleted.
    """
    if pipeline.table is not None:
        return F.col("key").cast("string") if side == "after" else F.lit(None).cast("string")
    row = F.col(f"change.{side}")
    by_paths = F.lit(None).cast("string")
    if pipeline.primary_key is not None:
        by_paths = key_text(row, pipeline.primary_key)
    if not pipeline.keyed_by_record:
        return by_paths
    by_record = F.when(F.col("record_key").isNull(), by_paths).otherwise(F.col("record_key.text"))
    return F.when(row.isNotNull(), by_record)


def key_problems(pipeline: Pipeline) -> list[Column]:
    """Returns why `before` or `after` cannot have a key on the topic, or a row has no primary key.

    The primary key is needed even by rows that do not match: their changes too are part of a row's history.
    """
    if pipeline.events:
        return _event_problems(pipeline)
    problems = [pipeline.key_problem(row, F.col(row)) for row in ("before", "after")]
    if not pipeline.knows_rows:
        return problems
    for row in ("before", "after"):
        value, name = row_identity(row, pipeline), pipeline.primary_key or "key"
        empty = F.col(f"change.{row}").isNotNull() & (value.isNull() | (value == ""))
        problems.append(F.when(empty, f"{row}.{name} is empty, a row needs its key"))
        too_long = F.lit(False) if pipeline.table else _too_long(value)
        problems.append(F.when(too_long, f"{row}.{name}{TOO_LONG}"))
        problems.append(F.when(value.startswith(MARK), f"{row}.{name} begins with a NUL, which no row's key may"))
    return [*_record_key_problems(pipeline), *problems]


def _event_problems(pipeline: Pipeline) -> list[Column]:
    """Finds why an event cannot have a key on the topic, or lacks its id or its time."""
    row, problems = F.col("after"), [pipeline.key_problem("after", F.col("after"))]
    for path in () if pipeline.deduplicate is None else pipeline.deduplicate.paths:
        problems += [*text_problems("after", row, path), missing("after", row, path)]
    if pipeline.time is not None:
        empty = row.isNotNull() & at(row, pipeline.time).isNull()
        problems.append(F.when(empty, f"after.{pipeline.time} is empty, which source.time names"))
    return problems


def event_time(pipeline: Pipeline) -> Column:
    """Returns the time of the event in `after`, in microseconds; null where its record has none that is usable."""
    own = F.col("change.source.commit_time") if pipeline.time is None else at(F.col("after"), pipeline.time)
    return F.unix_micros(own)


def is_in_a_group(row: Column, pipeline: Pipeline) -> Column:
    """Returns whether the row is in a group: a row with a null group is in none."""
    if not pipeline.group.repeated:
        return key_text(row, pipeline.group).isNotNull()
    return F.size(F.array_compact(element_texts(row, pipeline.group.paths[0]))) > 0


def _record_key_problems(pipeline: Pipeline) -> list[Column]:
    """Finds why two rows would be one, or stand under one key: the record key has more columns than the file's.

    The record key is the connector's. With `source.key` the file says the row's key, and the record's may hold values
    that are no part of it.
    """
    key = pipeline.row_key
    if pipeline.table is not None:
        if key is None or pipeline.definition.source.key is not None:
            return []
        other = ~F.col("key").cast("string").eqNullSafe(key_text(F.col("after"), key.paths))
        # Two makers write one row's key in two ways: as JSON text in quotes, or as plain text.
        problem = F.coalesce(key_form(F.col("key")), F.lit(key.mismatch))
        return [F.when(F.col("after").isNotNull() & other, problem)]
    if not pipeline.keyed_by_record:
        return []
    if key is None:
        unknown = "the record's key is no JSON object that names columns: say source.key"
        return [F.when(F.col("record_key").isNull() & F.col("change").isNotNull() & ~is_truncation(), unknown)]
    lacking = F.array_except("record_key.columns", F.array(*map(F.lit, key.columns)))
    problem = F.concat(
        F.lit("the record's key has "),
        F.array_join(lacking, ", "),
        F.lit(f", which {key.name} lacks: two rows would be one"),
    )
    return [F.when(F.size(lacking) > 0, problem)]


def group_problems(name: str, row: Column, group: KeyPaths) -> list[Column]:
    """Finds problems in the row's group as a part of its keys; a null is none of them."""
    problems = [each for path in group.paths for each in text_problems(name, row, path)]
    if len(group.paths) > 1:
        problems.append(F.when(_too_long(key_text(row, group)), f"{name}.{group}{TOO_LONG}"))
    return problems


def has_group(row: Column, group: KeyPaths) -> Column:
    """Returns whether the row is in a group, as far as one path tells it: a row with a null group needs no key."""
    return row.isNotNull() if group.repeated else key_text(row, group).isNotNull()


def usable_before(pipeline: Pipeline) -> Column:
    """`before`, or null where it cannot have a key and may be made up: the state knows the row of such a change."""
    before = F.col("before")
    if pipeline.definition.source.format != "debezium-json":
        return before
    usable = F.col("knows_before") | pipeline.key_problem("before", before).isNull()
    return F.when(usable, before)


def missing(name: str, row: Column, path: FieldPath) -> Column:
    """Returns why the row lacks a part of its key; a row before a change is not set aside for it."""
    if name == "before" or path.repeated:
        return F.lit(None).cast("string")
    return F.when(row.isNotNull() & at(row, path).isNull(), f"{name}.{path} is empty, a key needs it")


def sort_problems(name: str, row: Column, path: FieldPath) -> list[Column]:
    if path.kind == "string":
        return [*text_problems(name, row, path), missing(name, row, path)]
    negative = F.when(at(row, path) < 0, f"{name}.{path} is negative, its text would not sort as it does")
    problems = [missing(name, row, path), *([negative] if path.kind in ("integer", "decimal") else [])]
    if path.kind == "integer":  # an unsigned one may have a digit more
        wide = F.length(single(row, path)) > INTEGER_WIDTH
        problems.append(F.when(wide, f"{name}.{path} has more than {INTEGER_WIDTH} digits, its text would be cut"))
    return problems


def text_problems(name: str, row: Column, path: FieldPath) -> list[Column]:
    """Finds problems in the values of a path as parts of a key; a null is none of them."""

    def any_is(wrong: Callable[[Column], Column]) -> Column:
        if path.repeated:
            return F.exists(element_texts(row, path), wrong)
        return wrong(single(row, path))

    shown = f"{name}.{path}"
    return [
        F.when(any_is(lambda text: text == ""), f"{shown} is empty, a key needs it"),
        F.when(any_is(lambda text: text.contains(NUL)), f"{shown} holds a NUL, which separates the parts of a key"),
        F.when(any_is(_too_long), f"{shown}{TOO_LONG}"),
    ]


def _too_long(text: Column) -> Column:
    # A text has at least as many bytes as characters, and those need not be counted.
    return (F.octet_length(text) > MAX_PART) & (F.length(text) > MAX_PART)


def elements(row: Column, path: FieldPath) -> Column:
    """Returns all values of the path in the row, as an array; those of nested arrays in one."""
    value, many = row, False
    for field in path.fields:
        value = value.getField(field.name)
        value = F.flatten(value) if many and field.is_repeated else value
        many = many or field.is_repeated
    return value if many else F.array(value)


def element_texts(row: Column, path: FieldPath) -> Column:
    """Returns all values of the path in the row, as an array of texts."""
    values = elements(row, path)
    return values.cast("array<string>") if path.decimal is None else F.transform(values, partial(_text, path))


def single(row: Column, path: FieldPath) -> Column:
    """Returns the value of a path that is not repeated, as text."""
    return _text(path, at(row, path))


def _text(path: FieldPath, value: Column) -> Column:
    """Returns the text of one value of a path; a decimal has all of its decimals, where Spark's cast may write 1E-7."""
    if path.decimal is None:
        return value.cast("string")
    return F.replace(F.format_number(value, path.decimal.scale), F.lit(","), F.lit(""))


def sort_text(row: Column, path: FieldPath) -> Column:
    """Returns the value as text that sorts as it does."""
    value = at(row, path)
    if path.kind == "timestamp":
        return F.date_format(value, RFC3339)
    if path.decimal is not None:
        return F.lpad(single(row, path), path.decimal.width, "0")
    return F.lpad(value.cast("string"), INTEGER_WIDTH, "0") if path.kind == "integer" else value


def at(row: Column, path: FieldPath) -> Column:
    """Returns the value of a path that is not repeated."""
    return reduce(lambda value, name: value.getField(name), path.names, row)
