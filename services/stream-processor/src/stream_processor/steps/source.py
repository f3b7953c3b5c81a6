"""Reads a topic of changes as a stream."""

from pyspark.sql import DataFrame, SparkSession

from stream_processor.definition.sections import TriggerSection

MICRO_BATCH_RECORDS = 100_000
"""What one micro-batch takes at most, so that a backlog is worked off in steps; real-time mode takes no such bound."""


def read_changes(spark: SparkSession, bootstrap: str, topic: str, trigger: TriggerSection) -> DataFrame:
    """Kafka's columns of the topic, from its beginning: key, value, topic, partition, offset, headers and more.

    The query fails when records are gone that it has not read, in place of going on with a gap.
    """
    reader = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("subscribe", topic)
        .option("startingOffsets", "earliest")
        .option("failOnDataLoss", "true")
        .option("includeHeaders", "true")
    )
    if trigger.mode == "micro-batch":
        reader = reader.option("maxOffsetsPerTrigger", MICRO_BATCH_RECORDS)
    return reader.load()
