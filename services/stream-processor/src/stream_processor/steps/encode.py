"""Encodes the records of a keyed topic, and writes them.

StateRecords are encoded in parts, because encoded messages that are laid end to end are one message. So each part that
is large or does not change is encoded once and before the shuffle, however many keys it is written under.
"""

from collections.abc import Mapping
from datetime import timedelta

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name that every Spark program uses
from pyspark.sql.streaming.readwriter import DataStreamWriter

from statecast_domains.sections import ProducerSection
from stream_processor.steps.dead_letters import HEADERS, LETTER
from stream_processor.steps.functions import Functions
from stream_processor.steps.keys import NUL

STATE_RECORD = "statecast.state.v1.StateRecord"
TOMBSTONE_HEADER = "statecast-state-record"
MAX_REQUEST_BYTES = 32 * 1024 * 1024
"""The largest record that is written; the client's buffer holds as much by default."""
BESIDE_PAYLOAD = 16_384
"""Bytes beside the payload in the largest record: 12,290 of its key, 2,000 of its source and header, and Kafka's own.

keys.py bounds the key's parts. Kafka's own are those of a batch, and 4 for each 64 KiB that lz4 cannot compress.
"""


def encode_source(source: Column, functions: Functions) -> Column:
    """Returns the bytes of a StateRecord with nothing but its source."""
    return functions.encode(F.struct(_null("long"), _null("long"), source, _null("binary")), STATE_RECORD)


def encode_record(epoch: Column, sequence: Column, source: Column, payload: Column, functions: Functions) -> Column:
    """Returns the bytes of a StateRecord; `source` is of encode_source, a null `payload` is left out (a tombstone)."""
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
    """Returns a writer of `records`, each to its `topic`; at least once, each task in order."""
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
