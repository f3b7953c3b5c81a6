"""Turns changes of rows into the records of a keyed topic, for the keys that a row leaves and those it stands under.

The state is one small entry per row, in a Java operator (Previous.java) that runs in micro-batches and in real-time
mode. It is the fence that duplicates and late changes cannot pass. It knows nothing of keys and sums: `current` is an
array of anything that a row stands for.

StateRecords are encoded in parts, because encoded messages that are laid end to end are one message. So each part that
is large or does not change is encoded once and before the shuffle, however many keys it is written under.
"""

from collections.abc import Mapping, Sequence
from datetime import timedelta

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name that every Spark program uses
from pyspark.sql.streaming.readwriter import DataStreamWriter

from statecast_domains.sections import ProducerSection
from stream_processor.pipeline.pipeline import Pipeline
from stream_processor.spark_internals import partition_keys, previous_rows
from stream_processor.steps.dead_letters import HEADERS, LETTER, letter_key
from stream_processor.steps.functions import Functions
from stream_processor.steps.outcomes import STATE, clock, state_counts, truncation_counts
from stream_processor.steps.record_keys import NUL, is_truncation, row_identity

STATE_RECORD = "statecast.state.v1.StateRecord"
TOMBSTONE_HEADER = "statecast-state-record"
MAX_REQUEST_BYTES = 32 * 1024 * 1024
"""The largest record that is written; the client's buffer holds as much by default."""
BESIDE_PAYLOAD = 16_384
"""Bytes beside the payload in the largest record: 12,290 of its key, 2,000 of its source and header, and Kafka's own.

record_keys.py bounds the key's parts. Kafka's own are those of a batch, and 4 for each 64 KiB that lz4 cannot compress.
"""


def entries(changes: DataFrame, pipeline: Pipeline, functions: Functions, beside: Sequence[str] = ()) -> DataFrame:
    """Returns a line per row that a change names, with these columns and those `beside` of the change.

    - `primary_key` (text), `epoch`, `sequence`: which row, and where in its history; a negative sequence is that of
      a row which a snapshot has read when the log was there
    - `time`: by which a change at a lower place is found to be newer; `counted`: whether the line is the one of
      its record that tells how the record ended
    - `current`: the entries of the row after the change; empty when it is gone or does not match
    - `stated`: the entries of the row before the change, as the change itself says; `complete` is false when it
      cannot know them
    - `source`: the encoded StateRecord with nothing but its source; `payload`: the encoded row, null when it is gone

    A change of the primary key names two rows: one goes, and one comes. A truncation has a line for each partition of
    the state, and a dead letter one of its own. `changes` has `current` and `stated`.
    """
    nothing = F.filter("current", lambda _: F.lit(False))
    # As the change says it, whether the row matches the condition or not.
    old, new = (row_identity(row, pipeline) for row in ("before", "after"))
    yes, no = F.lit(True), F.lit(False)
    gone = F.struct(old.alias("primary_key"), nothing.alias("current"), F.col("stated"), no.alias("counted"))
    come = F.struct(new.alias("primary_key"), F.col("current"), nothing.alias("stated"), yes.alias("counted"))
    one = F.coalesce(letter_key(), new, old)
    same = F.struct(one.alias("primary_key"), F.col("current"), F.col("stated"), yes.alias("counted"))
    everywhere = F.transform(
        F.array(*map(F.lit, partition_keys(changes.sparkSession))),
        lambda key, number: F.struct(
            key.alias("primary_key"), nothing.alias("current"), nothing.alias("stated"), (number == 0).alias("counted")
        ),
    )
    rows = F.when(is_truncation(), everywhere).when(old != new, F.array(gone, come)).otherwise(F.array(same))
    source = F.col("change.source")
    # Everything is computed before the rows are split: of what is computed beside an explode, Spark 4.3's optimizer may
    # lose a column that it needs.
    whole = changes.select(
        rows.alias("rows"),
        "epoch",
        "sequence",
        clock(pipeline).alias("time"),
        (F.col("knows_before") | (F.col("change.operation") == "OPERATION_CREATE")).alias("complete"),
        encode_source(source, functions).alias("source"),
        F.when(F.size("current") > 0, F.col("payload")).alias("payload"),
        LETTER,
        *beside,
    )
    kept = ["epoch", "sequence", "time", "complete", "source", "payload", LETTER, *beside]
    return whole.select(F.explode("rows").alias("row"), *kept).select("row.*", *kept)


def known_rows(rows: DataFrame, pipeline: Pipeline, every_change: bool) -> DataFrame:
    """Returns the lines of previous_rows; the progress tells how the records ended, and of truncations."""
    known = previous_rows(rows, pipeline.definition.forget_deleted, every_change)
    return known.observe(STATE, *state_counts(), *truncation_counts())


def encode_source(source: Column, functions: Functions) -> Column:
    """The bytes of a StateRecord with nothing but its source."""
    return functions.encode(F.struct(_null("long"), _null("long"), source, _null("binary")), STATE_RECORD)


def encode_record(epoch: Column, sequence: Column, source: Column, payload: Column, functions: Functions) -> Column:
    """The bytes of a StateRecord; `source` comes from encode_source, and a null `payload` is left out (a tombstone)."""
    return F.concat(functions.encode(F.struct(epoch, sequence, _null("binary"), payload), STATE_RECORD), source)


def _null(of_type: str) -> Column:
    return F.lit(None).cast(of_type)


def to_records(lines: DataFrame, partitions: int, functions: Functions) -> DataFrame:
    """Returns `key`, `value`, `headers`, and the `partition` of the key's group, beside LETTER.

    A tombstone's StateRecord is in a header.
    """
    group = F.substring_index("key", NUL, 1).cast("binary")
    header = F.struct(F.lit(TOMBSTONE_HEADER).alias("key"), F.col("record").alias("value"))
    return lines.select(
        F.col("key").cast("binary").alias("key"),
        F.when(~F.col("deleted"), F.col("record")).alias("value"),
        F.when(F.col("deleted"), F.array(header)).cast(HEADERS).alias("headers"),
        functions.kafka_partition(group, partitions).alias("partition"),
        LETTER,
    )


def to_kafka(records: DataFrame, kafka: Mapping[str, str], producer: ProducerSection) -> DataStreamWriter:
    """A writer of `records`, each to its `topic`; at least once, each task in order."""
    return (
        records.writeStream.format("kafka")
        .options(**{f"kafka.{name}": value for name, value in kafka.items()})
        # A short wait spares the broker a request per record; whether it helps on busy cores was within the noise.
        .option("kafka.linger.ms", producer.linger // timedelta(milliseconds=1))
        .option("kafka.compression.type", producer.compression)
        .option("kafka.batch.size", producer.batch_size)
        # The topic says how large a record may be (its problem); the client's own bound must not be lower.
        .option("kafka.max.request.size", MAX_REQUEST_BYTES)
    )
