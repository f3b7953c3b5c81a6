"""Reads a topic as changes, and finds the problem of a change before it is used."""

import json
from collections.abc import Mapping
from datetime import timedelta

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  the name that every Spark program uses
from pyspark.sql.types import BooleanType, DataType, NumericType, StringType, TimestampType

from stream_processor.pipeline.pipeline import Pipeline
from stream_processor.steps.debezium import decode_debezium
from stream_processor.steps.event_rows import decode_events
from stream_processor.steps.functions import Functions, row_type
from stream_processor.steps.table_rows import decode_table

MAY_HAVE_BEFORE = ("OPERATION_UPDATE", "OPERATION_DELETE")
HAS_AFTER = ("OPERATION_CREATE", "OPERATION_UPDATE", "OPERATION_SNAPSHOT")
INSERTS = ("OPERATION_CREATE", "OPERATION_SNAPSHOT")
REALTIME_SOURCE = "io.statecast.spark.source.SharedKafkaSource"
FETCH_WAIT_MS = 10
"""How long the broker waits for records before it answers that there are none, to those who read what is there."""
TOMBSTONE = "a tombstone: the delete before it says that the row is gone"


def read_changes(
    spark: SparkSession,
    kafka: Mapping[str, str],
    topic: str,
    pipeline: Pipeline,
    tasks: int,
    starts: Mapping[int, int] | None,
    first_checkpoint: timedelta,
) -> DataFrame:
    """Reads Kafka's columns of the topic: key, value, topic, partition, offset, headers and more.

    Without a checkpoint it is read from `starts`, an offset for each partition, by default from its beginning. At most
    `tasks` tasks read it. In real-time mode the first batch of a run ends after `first_checkpoint`, which is not
    more than the interval of its checkpoints.

    The query fails when records that it has not read are gone, rather than going on with a gap. Records of aborted
    transactions are left out; an open one holds back the records behind it in its partition.
    """
    trigger = pipeline.definition.trigger
    reader = (
        spark.readStream.format("kafka" if trigger.mode == "micro-batch" else REALTIME_SOURCE)
        .options(**{f"kafka.{name}": value for name, value in kafka.items()})
        .option("kafka.isolation.level", "read_committed")
        .option("subscribe", topic)
        .option("startingOffsets", "earliest" if starts is None else json.dumps({topic: starts}))
        .option("failOnDataLoss", "true")
        .option("includeHeaders", "true")
    )
    if trigger.mode == "micro-batch":
        # A batch reads records that are there. After each fetch Spark asks for the partition's ends, and the broker
        # answers only once the next fetch, for which there may be no records yet, has waited.
        batches = reader.option("kafka.fetch.max.wait.ms", FETCH_WAIT_MS)
        return batches.option("maxOffsetsPerTrigger", trigger.max_records).load().coalesce(tasks)
    first_ms = first_checkpoint // timedelta(milliseconds=1)
    return reader.option("readTasks", tasks).option("firstCheckpointMs", first_ms).load()


def decode(records: DataFrame, pipeline: Pipeline, functions: Functions) -> DataFrame:
    """Adds `change` (the row of the pipeline's change message), `payload`, `problem` and `passed_over` (texts).

    `snapshot` is Debezium's word for a row that a snapshot has read, such as `true` or `incremental`, else null.

    Exactly one of `change`, `problem` and `passed_over` is set. The last says why a record is known to be no row, such
    as a tombstone of changes, a record with a key and no value: a connector writes one after each delete so that
    compaction forgets the row, and says nothing new with it.

    `payload` is the encoded row after the change, with the fields that this build's contract does not know, as far as
    the format carries them; null when there is no such row. `epoch` and `sequence` are those of the change's log.
    decode_debezium, decode_table and decode_events define them for a change that has none.
    """
    if pipeline.definition.source.row_values is not None:
        nothing, decode_rows = F.lit(None).cast("string"), decode_events if pipeline.events else decode_table
        return decode_rows(records.withColumns({"passed_over": nothing, "snapshot": nothing}), pipeline, functions)
    changes = records.withColumn("passed_over", F.when(F.col("value").isNull() & F.col("key").isNotNull(), TOMBSTONE))
    if pipeline.definition.source.format == "debezium-json":
        return decode_debezium(changes, pipeline, functions)
    no_value = F.when(F.col("value").isNull(), "the value is null")
    decoded = changes.withColumn("decoded", functions.decode_change(F.col("value"), pipeline.change.full_name))
    return decoded.select(
        *changes.columns,
        F.col("decoded.row").alias("change"),
        F.col("decoded.payload").alias("payload"),
        F.when(F.col("passed_over").isNull(), F.coalesce("decoded.problem", no_value)).alias("problem"),
        F.col("decoded.row.source.epoch").alias("epoch"),
        F.col("decoded.row.source.log_sequence_number").alias("sequence"),
        F.lit(None).cast("string").alias("snapshot"),
    )


def stated_before(pipeline: Pipeline) -> Column:
    """Returns the row before the change as far as the change can know it; null when there is none.

    Without REPLICA IDENTITY FULL, Debezium fills the columns of a deleted row that it does not know: nulls, and in
    columns that are NOT NULL an empty text, 0, 1970 or the column's default. So no value that may be made up counts as
    one, except in the primary key.
    """
    before = F.col("change.before")
    if pipeline.definition.source.format != "debezium-json":
        return before
    key = pipeline.primary_key
    fields = [
        _known(before.getField(each.name), each.dataType, key is not None and each.name in key.texts).alias(each.name)
        for each in row_type(pipeline.row).fields
    ]
    deleted = F.col("change.operation") == "OPERATION_DELETE"
    return F.when(deleted & before.isNotNull(), F.struct(*fields)).otherwise(before)


def _known(value: Column, of_type: DataType, of_key: bool) -> Column:
    return value if of_key else F.when(~_made_up(value, of_type), value)


def _made_up(value: Column, of_type: DataType) -> Column:
    """Returns whether the value may be one that stands for an unknown one."""
    if isinstance(of_type, StringType):
        return value == ""
    if isinstance(of_type, BooleanType):
        return ~value
    if isinstance(of_type, TimestampType):
        return value == F.timestamp_micros(F.lit(0).cast("bigint"))
    return value == 0 if isinstance(of_type, NumericType) else F.lit(False)


def knows_before(pipeline: Pipeline) -> Column:
    """Returns whether `before` is surely the row before the change. That of Debezium's deletes may be made up."""
    known = F.col("change.before").isNotNull()
    if pipeline.definition.source.format == "debezium-json":
        known = known & (F.col("change.operation") != "OPERATION_DELETE")
    return known


def change_problems(pipeline: Pipeline) -> list[Column]:
    """Returns why the change contradicts itself, or the file's `insert_only`; each is null where it does not.

    The rules are those of statecast.change.v1.Operation: each operation has the rows that it speaks of, and the source
    gives the change's position in its log. Only an update may come without its row before: a database logs it only
    when configured to, and the state knows the row.
    """
    if pipeline.definition.source.row_values is not None:
        return []
    before, after, operation = F.col("change.before"), F.col("change.after"), F.col("change.operation")
    problems = [
        F.when(operation == "OPERATION_UNSPECIFIED", "operation is not set"),
        F.when(F.col("change.source").isNull() & F.col("change").isNotNull(), "source is not set"),
        _contradiction((operation == "OPERATION_DELETE") & before.isNull(), "before is not set"),
        _contradiction(~operation.isin(*MAY_HAVE_BEFORE) & before.isNotNull(), "before is set"),
        _contradiction(operation.isin(*HAS_AFTER) & after.isNull(), "after is not set"),
        _contradiction(~operation.isin(*HAS_AFTER) & after.isNotNull(), "after is set"),
    ]
    if pipeline.definition.insert_only:
        problems.append(_contradiction(~operation.isin(*INSERTS), "insert_only is true"))
    return problems


def _contradiction(wrong: Column, what: str) -> Column:
    return F.when(wrong, F.concat(F.lit(f"{what}, but operation is "), F.col("change.operation")))
