"""Reads a table, a compacted topic, as changes: a value is the row under the record's key, and null deletes it.

No record tells what the row was before: the state knows. So a table has neither `before` nor any operation but update
and delete, and the output of one pipeline can be the input of another.
"""

from google.protobuf.descriptor import Descriptor
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name that every Spark program uses

from stream_processor.definition.pipeline import Pipeline
from stream_processor.steps.functions import Functions, row_type
from stream_processor.steps.json_texts import DECLARED, MALFORMED, read_json, read_tree, text_fields, trees_of
from stream_processor.steps.keyed_topic import STATE_RECORD, TOMBSTONE_HEADER

MAX_KEY = 3_074
"""Characters of a record's key: those of a group, a sort and a member with the NULs between them."""
_DECODED, _STATE = "__decoded", "__state"


def decode_table(records: DataFrame, pipeline: Pipeline, functions: Functions) -> DataFrame:
    """Adds `change`, a struct(operation, source, before, after) whose `before` is null, and what decode adds beside it.

    Of state-records `epoch`, `sequence` and `source` are what the pipeline that wrote them has given, also with a
    tombstone. Of other values `sequence` is the offset, `epoch` is null, and the source has the record's time.
    """
    read = _READERS[pipeline.table or "state-record"](records, pipeline.row, functions)
    problem = F.coalesce(_key_problem(F.col("key")), F.col("problem"))
    checked = read.withColumn("problem", problem)
    sound, deleted = F.col("problem").isNull(), F.col("value").isNull()
    row = F.col(f"{_DECODED}.row")
    change = F.struct(
        F.when(deleted, "OPERATION_DELETE").otherwise("OPERATION_UPDATE").alias("operation"),
        F.col("source"),
        F.lit(None).cast(row_type(pipeline.row)).alias("before"),
        row.alias("after"),
    )
    return checked.select(
        *records.columns,
        F.when(sound, change).alias("change"),
        F.when(sound, F.col(f"{_DECODED}.payload")).alias("payload"),
        "problem",
        "epoch",
        "sequence",
    )


def _key_problem(key: Column) -> Column:
    text = key.cast("string")
    return F.coalesce(
        F.when(key.isNull() | (text == ""), "the record has no key, which tells the rows of a table apart"),
        F.when(~F.is_valid_utf8(text), "the record's key is no UTF-8"),
        F.when(F.length(text) > MAX_KEY, f"the record's key has more than {MAX_KEY:,} characters"),
    )


def _of_state_records(records: DataFrame, row: Descriptor, functions: Functions) -> DataFrame:
    """What is wrong with the record, or its row, its place in its history, and its source."""
    own = F.filter("headers", lambda each: each.getField("key") == TOMBSTONE_HEADER)
    encoded = F.coalesce(F.col("value"), F.get(own, F.lit(0)).getField("value"))
    state = records.withColumn(_STATE, functions.decode_row(encoded, STATE_RECORD))
    payload = F.when(F.col("value").isNotNull(), F.col(f"{_STATE}.row.payload"))
    read = state.withColumn(_DECODED, functions.decode_row(payload, row.full_name))
    problems = [
        F.when(encoded.isNull(), f"the value is null, and no header {TOMBSTONE_HEADER} says what is deleted"),
        F.col(f"{_STATE}.problem"),
        F.when(F.col(f"{_STATE}.row.source").isNull(), f"the {STATE_RECORD} has no source"),
        F.concat(F.lit("payload: "), F.col(f"{_DECODED}.problem")),
    ]
    placed = {name: F.col(f"{_STATE}.row.{name}") for name in ("epoch", "sequence", "source")}
    return read.withColumns({**placed, "problem": F.coalesce(*problems)})


def _of_messages(records: DataFrame, row: Descriptor, functions: Functions) -> DataFrame:
    read = records.withColumn(_DECODED, functions.decode_row(F.col("value"), row.full_name))
    return _by_offset(read.withColumn("problem", F.col(f"{_DECODED}.problem")))


def _of_json(records: DataFrame, row: Descriptor, functions: Functions) -> DataFrame:
    """Fields of the JSON object have the names of the row's; others are left out, and null is as if it were missing."""
    value = F.col("value").cast("string")
    read = records.withColumn("__texts", read_json(value, text_fields(*row.fields_by_name)))
    texts = F.col("__texts")
    trees = {f"__tree_{field.name}": read_tree(texts.getField(field.name), field) for field in trees_of(row)}
    read = read.withColumns(trees)
    fields = [
        (F.col(f"__tree_{field.name}.value") if field in trees_of(row) else texts.getField(field.name)).alias(
            field.name
        )
        for field in row.fields
    ]
    whole = F.when(texts.isNotNull(), F.struct(*fields))
    read = read.withColumn(_DECODED, functions.row_from_texts(whole, F.lit(None).cast(DECLARED), row.full_name))
    malformed = [
        F.when(F.col(f"__tree_{field.name}").getField(MALFORMED).isNotNull(), f"{field.name} is no JSON that fits it")
        for field in trees_of(row)
    ]
    problems = [
        F.when(~F.is_valid_utf8(value), "the value is no UTF-8"),
        F.when(~F.ltrim(value).startswith("{") | texts.getField(MALFORMED).isNotNull(), "the value is no JSON object"),
        *malformed,
        F.col(f"{_DECODED}.problem"),
    ]
    return _by_offset(read.withColumn("problem", F.coalesce(*problems)))


def _by_offset(read: DataFrame) -> DataFrame:
    """The place of a record that tells none: its offset. The epoch is the checkpoint's."""
    source = F.struct(
        F.lit(0).cast("bigint").alias("epoch"),
        F.col("offset").alias("log_sequence_number"),
        F.lit("").alias("transaction_id"),
        F.col("timestamp").alias("commit_time"),
        F.lit(False).alias("snapshot"),
        F.col("topic").alias("table"),
    )
    return read.withColumns({"epoch": F.lit(None).cast("bigint"), "sequence": F.col("offset"), "source": source})


_READERS = {"state-record": _of_state_records, "protobuf": _of_messages, "json": _of_json}
