"""Turns the JSON of Debezium's connectors into changes of the contract, or into the reason why it is none.

The envelope may stand alone or in `payload` beside its `schema`, as `schemas.enable` of the connector's converter says.
Columns of the table have the names of the row's fields; others are left out. JSON is read into texts (json_texts).
"""

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name that every Spark program uses
from pyspark.sql.types import ArrayType, StringType, StructField, StructType

from stream_processor.pipeline.fields import kind
from stream_processor.pipeline.pipeline import Pipeline
from stream_processor.steps.debezium_forms import (
    OPERATIONS,
    column_names,
    columns_problem,
    form_problem,
    names_of,
    names_of_key,
    passed_over,
)
from stream_processor.steps.functions import Functions, row_type
from stream_processor.steps.json_texts import (
    MALFORMED,
    SCHEMA,
    declared_types,
    read_json,
    read_map,
    read_tree,
    text_fields,
    trees_of,
    unavailable_problem,
)
from stream_processor.steps.keys import BETWEEN_VALUES, LAST_TIME, escaped
from stream_processor.steps.log_positions import POSITION_FIELDS, READ, log_position, position_problem

FIRST_EPOCH = 1
SIDES = ("before", "after")
ENVELOPE = text_fields("schema", "payload", "op", "source", "before", "after", "ts_ms", "ts_us")
SIDES_SCHEMA = StructType(
    [StructField("fields", ArrayType(StructType([StructField("field", StringType()), *SCHEMA.fields])))]
)
SOURCE_FIELDS = text_fields(*POSITION_FIELDS, "txId", "gtid", "ts_ms", "ts_us", "snapshot", "table")
TIMES = {"ts_us": 1, "ts_ms": 1000}
"""The fields that hold a time, and the microseconds in one unit of each."""
MAX_SHOWN = 40


def decode_debezium(records: DataFrame, pipeline: Pipeline, functions: Functions) -> DataFrame:
    """Adds `change` (the row of the pipeline's change message), `payload` (the encoded row after it) and `problem`.

    `problem` (text) or `change` is null, and both are where `passed_over` says why the record is no row. All changes
    are of the epoch that the pipeline's file says, because no database counts its incarnations. A column that is NULL
    is null in the rows, too.

    `record_key` is the content of the connector's record key: the names of the primary key's columns, and their values
    as one text; null when the key is no JSON object. `sequence` is negative for a row that a snapshot has read, which
    has no place of its own in the log: the last commit before it, or the log's end (ADR 0023).
    """
    row = pipeline.row
    texts = _with_texts(records, row)
    rows = {side: functions.row_from_texts(_columns(row, side), _declared(side), row.full_name) for side in SIDES}
    read = texts.withColumns({f"__{side}_row": column for side, column in rows.items()})
    key_names = names_of_key(F.col("key").cast("string"), F.col("record_key.columns"))
    other = passed_over(F.col("__envelope"), F.col("__names"), key_names)
    keyed = _with_record_key(read).withColumn("passed_over", F.coalesce("passed_over", other))
    checked = keyed.withColumn("problem", F.when(F.col("passed_over").isNull(), _problem(row)))
    sound = F.col("problem").isNull() & F.col("passed_over").isNull()
    number = log_position(F.col("__source"), F.col("__envelope.op"))
    change = _change(pipeline.change, pipeline.definition.source.epoch or FIRST_EPOCH)
    changes = checked.withColumns(
        {
            "change": F.when(sound, change),
            "payload": F.when(sound, F.col("__after_row.payload")),
            "epoch": F.col("change.source.epoch"),
            "sequence": F.when(F.col("__envelope.op") == READ, -number).otherwise(number),
            "snapshot": F.when(sound & (F.col("__envelope.op") == READ), F.lower("__source.snapshot")),
        }
    )
    return changes.select(
        *records.columns, "change", "payload", "problem", "epoch", "sequence", "snapshot", "record_key"
    )


def _with_record_key(records: DataFrame) -> DataFrame:
    """Adds `record_key`, struct(columns, text) of a record's key, which may stand in `payload` beside its schema.

    The text is null where a value is: two keys with nulls in different places would be one.
    """
    key = F.col("key").cast("string")
    whole, inner = F.col("__whole_key.value"), F.col("__inner_key.value")
    wrapped = F.when(F.map_contains_key(whole, "schema"), F.try_element_at(whole, F.lit("payload")))
    columns, texts = F.map_keys("__key"), F.map_values("__key")
    several = F.when(F.forall(texts, F.isnotnull), F.array_join(F.transform(texts, escaped), BETWEEN_VALUES))
    text = F.when(F.size(texts) == 1, F.get(texts, F.lit(0))).otherwise(several)
    return (
        records.withColumn("__whole_key", read_map(F.when(F.ltrim(key).startswith("{"), key)))
        .withColumn("__inner_key", read_map(wrapped))
        .withColumn("__key", F.coalesce(inner, whole))
        .withColumn("record_key", F.when(F.size("__key") > 0, F.struct(columns.alias("columns"), text.alias("text"))))
    )


def _with_texts(records: DataFrame, row: Descriptor) -> DataFrame:
    """Adds the parts of the change's JSON, each as an object of texts."""
    outer, inner = F.col("__outer"), read_json(F.col("__outer.payload"), ENVELOPE)
    columns = text_fields(*row.fields_by_name)
    trees = [(side, field) for side in SIDES for field in trees_of(row)]
    return (
        records.withColumn("__value", F.col("value").cast("string"))
        .withColumn("__outer", read_json(F.col("__value"), ENVELOPE))
        .withColumn("__envelope", F.when(F.col("__outer.payload").isNull(), outer).otherwise(inner))
        .withColumn("__names", names_of(F.col("__value"), F.col("__envelope")))
        .withColumn("__schema", read_json(F.col("__outer.schema"), SIDES_SCHEMA))
        .withColumn("__source", read_json(F.col("__envelope.source"), SOURCE_FIELDS))
        .withColumns({f"__{side}": read_json(F.col(f"__envelope.{side}"), columns) for side in SIDES})
        .withColumns(
            {f"__{side}_names": column_names(F.col(f"__envelope.{side}"), F.col(f"__{side}"), row) for side in SIDES}
        )
        .withColumns(
            {_tree(side, each): read_tree(F.col(f"__{side}").getField(each.name), each) for side, each in trees}
        )
    )


def _tree(side: str, field: FieldDescriptor) -> str:
    return f"__{side}_{field.name}"


def _columns(row: Descriptor, side: str) -> Column:
    trees = {field.name: F.col(_tree(side, field)).getField("value") for field in trees_of(row)}
    texts = F.col(f"__{side}")

    def column(field: FieldDescriptor) -> Column:
        value = texts.getField(field.name)
        if kind(field) == "string" or side == "after":
            return value
        # Where it does not know a value of a deleted row, the connector may make up a text that fits no enum or time.
        return F.when((F.col("__envelope.op") != "d") | (value != ""), value)

    fields = [trees.get(field.name, column(field)).alias(field.name) for field in row.fields]
    return F.when(texts.isNotNull(), F.struct(*fields))


def _declared(side: str) -> Column:
    """Returns the columns' types by the schema, an array's those of its elements: array of struct(field, name, scale).

    Returns null without a schema.
    """
    row = F.get(F.filter(F.col("__schema.fields"), lambda each: each.getField("field") == side), F.lit(0))
    return declared_types(row.getField("fields"))


def _change(change: Descriptor, epoch: int) -> Column:
    """Returns the change message's row; a field that Debezium knows nothing of is null."""
    pairs = [F.lit(part) for pair in OPERATIONS.items() for part in pair]
    known = {
        "operation": F.try_element_at(F.create_map(*pairs), F.col("__envelope.op")),
        "source": _source(F.col("__source"), epoch),
        "captured_at": _time(F.col("__envelope")),
        **{side: F.col(f"__{side}_row.row") for side in SIDES},
    }
    fields = row_type(change)
    return F.struct(*[known.get(each.name, F.lit(None).cast(each.dataType)).alias(each.name) for each in fields])


def _problem(row: Descriptor) -> Column:
    source, envelope = F.col("__source"), F.col("__envelope")
    problems = [
        form_problem(F.col("__value"), envelope, F.col("__names"), source.getField("connector"), row),
        F.when(source.getField(MALFORMED).isNotNull(), "source is no JSON object"),
        position_problem(source, envelope.getField("op")),
        _time_problem(source, "source."),
        _time_problem(envelope, ""),
    ]
    for side in SIDES:
        problems += _row_problems(side, row)
    return F.coalesce(*problems)


def _row_problems(side: str, row: Descriptor) -> list[Column]:
    texts = F.col(f"__{side}")
    problems = [
        F.when(texts.getField(MALFORMED).isNotNull(), f"{side} is no JSON object"),
        columns_problem(side, F.col(f"__{side}_names"), row),
        unavailable_problem(texts, row.fields_by_name, f"{side}."),
    ]
    for field in trees_of(row):
        what = field.message_type.full_name if field.message_type is not None else kind(field)
        form = f"it must be JSON, a list of {what}" if field.is_repeated else f"it must be JSON of {what}"
        malformed = F.col(_tree(side, field)).getField(MALFORMED).isNotNull()
        # The connector's placeholder for a value that it does not know need not have the value's form.
        malformed = malformed & (F.col("__envelope.op") != "d")
        problems.append(F.when(malformed, f"{side}.{field.name} does not fit: {form}"))
    return [*problems, F.concat(F.lit(f"{side}."), F.col(f"__{side}_row.problem"))]


def _source(texts: Column, epoch: int) -> Column:
    """statecast.change.v1.Source from an object of SOURCE_FIELDS; null where the change has no source."""
    fields = {
        "epoch": F.lit(epoch).cast("bigint"),
        "log_sequence_number": log_position(texts, F.col("__envelope.op")),
        "transaction_id": F.coalesce(texts.getField("txId"), texts.getField("gtid"), F.lit("")),
        "commit_time": _time(texts),
        # `true`, `first`, `last`, `incremental` and more, or `false`.
        "snapshot": F.coalesce(F.lower(texts.getField("snapshot")) != "false", F.lit(False)),
        "table": F.coalesce(texts.getField("table"), F.lit("")),
    }
    return F.when(texts.isNotNull(), F.struct(*[column.alias(name) for name, column in fields.items()]))


def _time(texts: Column) -> Column:
    """Returns the time in `ts_us`, or in `ts_ms`, the only one of older connectors."""
    return F.coalesce(*[_moment(texts.getField(name), unit) for name, unit in TIMES.items()])


def _time_problem(texts: Column, within: str) -> Column:
    """Names a time that is not in the years 1970 to 9999; one may be missing."""
    wrong = []
    for name, unit in TIMES.items():
        text = texts.getField(name)
        said = F.concat(F.lit(f"{within}{name} is no time of the years 1970 to 9999: "), F.left(text, F.lit(MAX_SHOWN)))
        wrong.append(F.when(text.isNotNull() & _moment(text, unit).isNull(), said))
    return F.coalesce(*wrong)


def _moment(count: Column, microseconds: int) -> Column:
    total = F.when(count.rlike(r"^\d{1,18}$"), count.cast("decimal(18,0)") * microseconds)
    return F.when(total <= LAST_TIME, F.timestamp_micros(total.cast("bigint")))
