"""Reads a table, a compacted topic, as changes: a value is the row under the record's key, and null deletes it.

No record has the row as it was before: the state knows. So a table has neither `before` nor any operation but update
and delete, and the output of one pipeline can be the input of another.
"""

from collections.abc import Sequence

from google.protobuf.descriptor import Descriptor
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name that every Spark program uses

from stream_processor.pipeline.pipeline import Pipeline
from stream_processor.steps.encode import STATE_RECORD, TOMBSTONE_HEADER
from stream_processor.steps.foreign_forms import key_form, value_form
from stream_processor.steps.functions import Functions, row_type
from stream_processor.steps.json_rows import read_rows
from stream_processor.steps.keys import LAST_TIME

MAX_KEY = 3_074
"""Characters of a record's key: those of a group, a sort and a member with the NULs between them."""
DECODED, _STATE = "__decoded", "__state"


def decode_table(records: DataFrame, pipeline: Pipeline, functions: Functions) -> DataFrame:
    """Adds `change`, a struct(operation, source, before, after) with a null `before`, and the columns that decode adds.

    For state-records `epoch`, `sequence` and `source` are those that the pipeline that wrote them has given, also with
    a tombstone. For other values `sequence` is the offset, `epoch` is null, and the source has the record's time.
    """
    read = READERS[pipeline.table or "state-record"](records, pipeline.row, functions)
    problem = F.coalesce(_key_problem(F.col("key"), pipeline), value_problem(pipeline))
    deleted = F.col("value").isNull() | F.col("leaves")
    operation = F.when(deleted, "OPERATION_DELETE").otherwise("OPERATION_UPDATE")
    return rows_as_changes(read.withColumn("problem", problem), operation, ~deleted, records.columns, pipeline)


def rows_as_changes(
    read: DataFrame, operation: Column, has_row: Column, kept: Sequence[str], pipeline: Pipeline
) -> DataFrame:
    """Returns the columns `kept` and those that decode adds, of records that one of READERS has read."""
    sound = F.col("problem").isNull()
    change = F.struct(
        operation.alias("operation"),
        F.col("source"),
        F.lit(None).cast(row_type(pipeline.row)).alias("before"),
        F.when(has_row, F.col(f"{DECODED}.row")).alias("after"),
    )
    payload = F.when(sound & has_row, F.col(f"{DECODED}.payload")).alias("payload")
    return read.select(*kept, F.when(sound, change).alias("change"), payload, "problem", "epoch", "sequence")


def _key_problem(key: Column, pipeline: Pipeline) -> Column:
    text = key.cast("string")
    binary = ~F.is_valid_utf8(text)
    if pipeline.ordered_by_offset:
        # Keyed topics alone have keys that begin with an empty part. Small numbers in binary are valid UTF-8.
        binary = binary | text.startswith("\0")
    return F.coalesce(
        F.when(key.isNull() | (text == ""), "the record has no key, which tells the rows of a table apart"),
        F.when(binary, F.coalesce(key_form(key), F.lit("the record's key is no text"))),
        F.when(F.length(text) > MAX_KEY, f"the record's key has more than {MAX_KEY:,} characters"),
    )


def value_problem(pipeline: Pipeline) -> Column:
    """Returns the `problem` of a value, with the likely form of the value in its place or behind it."""
    problem, named = F.col("problem"), value_form(F.col("value"))
    if pipeline.definition.source.row_values != "json":
        is_json = F.col("value").cast("string").rlike(r"^\s*[{\[]")
        json = F.concat(problem, F.lit(" (the value looks like JSON: then say source.values: json)"))
        named = F.coalesce(named, F.when(is_json, json))
    return F.when(problem.isNotNull(), F.coalesce(named, problem))


def _of_state_records(records: DataFrame, row: Descriptor, functions: Functions) -> DataFrame:
    """Adds the record's problem, or its row, its place in its history, and its source."""
    own = F.filter("headers", lambda each: each.getField("key") == TOMBSTONE_HEADER)
    encoded = F.coalesce(F.col("value"), F.get(own, F.lit(0)).getField("value"))
    state = records.withColumn(_STATE, functions.decode_row(encoded, STATE_RECORD))
    payload = F.when(F.col("value").isNotNull(), F.col(f"{_STATE}.row.payload"))
    read = state.withColumn(DECODED, functions.decode_row(payload, row.full_name))
    problems = [
        F.when(encoded.isNull(), f"the value is null, and no header {TOMBSTONE_HEADER} says what is deleted"),
        F.col(f"{_STATE}.problem"),
        F.when(F.col(f"{_STATE}.row.source").isNull(), f"the {STATE_RECORD} has no source"),
        F.concat(F.lit("payload: "), F.col(f"{DECODED}.problem")),
    ]
    placed = {name: F.col(f"{_STATE}.row.{name}") for name in ("epoch", "sequence", "source")}
    return read.withColumns({**placed, "problem": F.coalesce(*problems), "leaves": F.lit(False)})


def _of_messages(records: DataFrame, row: Descriptor, functions: Functions) -> DataFrame:
    read = records.withColumn(DECODED, functions.decode_row(F.col("value"), row.full_name))
    return _by_offset(read.withColumns({"problem": F.col(f"{DECODED}.problem"), "leaves": F.lit(False)}))


def _of_json(records: DataFrame, row: Descriptor, functions: Functions) -> DataFrame:
    return _by_offset(read_rows(records, row, functions).withColumnRenamed("decoded", DECODED))


def _by_offset(read: DataFrame) -> DataFrame:
    """Takes the offset as the place of a record that has none of its own. The epoch is the checkpoint's.

    A time that a Timestamp of the contract cannot hold, or from before 1970, is none: the producer has stamped other
    units than milliseconds, or nothing.
    """
    micros = F.unix_micros("timestamp")
    source = F.struct(
        F.lit(0).cast("bigint").alias("epoch"),
        F.col("offset").alias("log_sequence_number"),
        F.lit("").alias("transaction_id"),
        F.when(micros.between(0, LAST_TIME), F.col("timestamp")).alias("commit_time"),
        F.lit(False).alias("snapshot"),
        F.col("topic").alias("table"),
    )
    return read.withColumns({"epoch": F.lit(None).cast("bigint"), "sequence": F.col("offset"), "source": source})


READERS = {"state-record": _of_state_records, "protobuf": _of_messages, "json": _of_json}
"""By the kind of values, a function that reads them: it adds DECODED, `problem`, `leaves` and the record's place."""
