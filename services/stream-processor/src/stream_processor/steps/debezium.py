"""Turns the JSON of Debezium's connectors into changes of the contract, or into the reason why it is none.

The envelope may stand alone or in `payload` beside its `schema`, as `schemas.enable` of the connector's converter says.
Columns of the table have the names of the row's fields; others are left out. JSON is read with Spark's own from_json
into texts, which lose nothing: a number keeps all its digits.
"""

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name that every Spark program uses

from stream_processor.definition.contract import kind
from stream_processor.definition.pipeline import Pipeline
from stream_processor.steps.functions import Functions, row_type
from stream_processor.steps.json_texts import (
    MALFORMED,
    TYPE,
    declared_types,
    read_json,
    read_tree,
    text_fields,
    trees_of,
)
from stream_processor.steps.log_positions import POSITION_FIELDS, log_position, position_problem
from stream_processor.steps.record_keys import BETWEEN_VALUES, escaped
from stream_processor.steps.truncation import TRUNCATE

FIRST_EPOCH = 1
SIDES = ("before", "after")
OPERATIONS = {
    "c": "OPERATION_CREATE",
    "u": "OPERATION_UPDATE",
    "d": "OPERATION_DELETE",
    "r": "OPERATION_SNAPSHOT",
    "t": TRUNCATE,
}
NO_OPERATION = f"op is none of {', '.join(OPERATIONS)}: "
OTHER_OPERATIONS = {"m": "op is m: a message in the database's log is no change of a row"}
UNWRAPPED = (
    "op is not set: the record is a row alone, without its place in the log; take the transform ExtractNewRecordState "
    "out of the connector"
)
ENVELOPE = text_fields("schema", "payload", "op", "source", "before", "after", "ts_ms", "ts_us")
SCHEMA = f"fields array<struct<field: string, fields: array<struct<field: string, {TYPE}, items: struct<{TYPE}>>>>>"
SOURCE_FIELDS = text_fields(*POSITION_FIELDS, "txId", "gtid", "ts_ms", "ts_us", "snapshot", "table")
END_US = 253_402_300_800_000_000
"""The end of the year 9999, which a Timestamp of the contract cannot pass."""


def decode_debezium(records: DataFrame, pipeline: Pipeline, functions: Functions) -> DataFrame:
    """Adds `change` (the row of the pipeline's change message), `payload` (the encoded row after it) and `problem`.

    `problem` (text) or `change` is null, and both are where `passed_over` says why the record is no row. All changes
    are of the epoch that the pipeline's file says, because no database counts its incarnations. A column that is NULL
    is null in the rows, too.

    `record_key` is what the connector's record key says: the names of the primary key's columns, and their values as
    one text; null when the key is no JSON object. `sequence` is negative of a row that a snapshot has read, which
    has no place of its own in the log: the last commit before it, or the log's end (ADR 0023).
    """
    row = pipeline.row
    texts = _with_texts(records, row)
    rows = {side: functions.row_from_texts(_columns(row, side), _declared(side), row.full_name) for side in SIDES}
    read = texts.withColumns({f"__{side}_row": column for side, column in rows.items()})
    checked = read.withColumn("problem", F.when(F.col("passed_over").isNull(), _problem(row)))
    sound = F.col("problem").isNull() & F.col("passed_over").isNull()
    number = log_position(F.col("__source"), F.col("__envelope.op"))
    change = _change(pipeline.change, pipeline.definition.source.epoch or FIRST_EPOCH)
    changes = checked.withColumns(
        {
            "change": F.when(sound, change),
            "payload": F.when(sound, F.col("__after_row.payload")),
            "record_key": _record_key(F.col("key").cast("string")),
            "epoch": F.col("change.source.epoch"),
            "sequence": F.when(F.col("__envelope.op") == "r", -number).otherwise(number),
        }
    )
    return changes.select(*records.columns, "change", "payload", "problem", "epoch", "sequence", "record_key")


def _record_key(key: Column) -> Column:
    """struct(columns, text) of a record's key, which may stand in `payload` beside its schema.

    The text is null where a value is: two keys with nulls in different places would be one.
    """
    whole = F.from_json(F.when(F.ltrim(key).startswith("{"), key), "map<string,string>")
    inner = F.from_json(F.try_element_at(whole, F.lit("payload")), "map<string,string>")
    values = F.when(F.map_contains_key(whole, "schema") & inner.isNotNull(), inner).otherwise(whole)
    columns = F.array_sort(F.map_keys(values))
    texts = F.transform(columns, lambda name: F.try_element_at(values, name))
    several = F.when(F.forall(texts, F.isnotnull), F.array_join(F.transform(texts, escaped), BETWEEN_VALUES))
    text = F.when(F.size(texts) == 1, F.get(texts, F.lit(0))).otherwise(several)
    return F.when(F.size(columns) > 0, F.struct(columns.alias("columns"), text.alias("text")))


def _with_texts(records: DataFrame, row: Descriptor) -> DataFrame:
    """Adds the parts of the change's JSON, each as an object of texts."""
    outer, inner = F.col("__outer"), read_json(F.col("__outer.payload"), ENVELOPE)
    columns = text_fields(*row.fields_by_name)
    trees = [(side, field) for side in SIDES for field in trees_of(row)]
    return (
        records.withColumn("__value", F.col("value").cast("string"))
        .withColumn("__outer", read_json(F.col("__value"), ENVELOPE))
        .withColumn("__envelope", F.when(F.col("__outer.payload").isNull(), outer).otherwise(inner))
        .withColumn("__schema", F.from_json(F.col("__outer.schema"), SCHEMA))
        .withColumn("__source", read_json(F.col("__envelope.source"), SOURCE_FIELDS))
        .withColumns({f"__{side}": read_json(F.col(f"__envelope.{side}"), columns) for side in SIDES})
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
    """What the schema says of the columns, of an array's of its elements: array of struct(field, name, scale).

    Null without a schema.
    """
    row = F.get(F.filter(F.col("__schema.fields"), lambda each: each.getField("field") == side), F.lit(0))
    return declared_types(row.getField("fields"))


def _change(change: Descriptor, epoch: int) -> Column:
    """The change message's row; a field that Debezium knows nothing of is null."""
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
    source = F.col("__source")
    problems = [
        _envelope_problem(F.col("__value"), F.col("__envelope")),
        F.when(source.getField(MALFORMED).isNotNull(), "source is no JSON object"),
        position_problem(source, F.col("__envelope.op")),
    ]
    for side in SIDES:
        malformed = F.col(f"__{side}").getField(MALFORMED).isNotNull()
        problems.append(F.when(malformed, f"{side} is no JSON object"))
        for field in trees_of(row):
            what = field.message_type.full_name if field.message_type is not None else kind(field)
            form = f"it must be JSON, a list of {what}" if field.is_repeated else f"it must be JSON of {what}"
            malformed = F.col(_tree(side, field)).getField(MALFORMED).isNotNull()
            # What the connector makes up for a value that it does not know need not have the value's form.
            malformed = malformed & (F.col("__envelope.op") != "d")
            problems.append(F.when(malformed, f"{side}.{field.name} does not fit: {form}"))
        problems.append(F.concat(F.lit(f"{side}."), F.col(f"__{side}_row.problem")))
    return F.coalesce(*problems)


def _envelope_problem(value: Column, envelope: Column) -> Column:
    op = envelope.getField("op")
    return F.coalesce(
        F.when(value.isNull(), "the value is null"),
        F.when(~F.is_valid_utf8(value), "the value is no UTF-8"),
        F.when(
            ~F.ltrim(value).startswith("{") | envelope.isNull() | envelope.getField(MALFORMED).isNotNull(),
            "the value is no JSON object",
        ),
        F.when(op.isNull() & _unwrapped(value, envelope), UNWRAPPED),
        F.when(op.isNull(), "op is not set: this is no change by Debezium"),
        *[F.when(op == other, reason) for other, reason in OTHER_OPERATIONS.items()],
        F.when(~op.isin(*OPERATIONS), F.concat(F.lit(NO_OPERATION), F.left(op, F.lit(10)))),
    )


def _unwrapped(value: Column, envelope: Column) -> Column:
    """Whether an object that is no envelope has a row's columns in the place of one."""
    part_of_envelope = F.coalesce(*[envelope.getField(name) for name in ("before", "after", "source")])
    whole = F.from_json(value, "map<string,string>")
    columns = F.coalesce(F.from_json(F.try_element_at(whole, F.lit("payload")), "map<string,string>"), whole)
    return part_of_envelope.isNull() & (F.size(columns) > 0)


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
    """The time in `ts_us`, or in `ts_ms`, the only one of older connectors."""
    return F.coalesce(_moment(texts.getField("ts_us"), 1), _moment(texts.getField("ts_ms"), 1000))


def _moment(count: Column, microseconds: int) -> Column:
    total = F.when(count.rlike(r"^\d{1,18}$"), count.cast("decimal(18,0)") * microseconds)
    return F.when(total < END_US, F.timestamp_micros(total.cast("bigint")))
