"""Keeps records within what their topics take: one that Kafka refuses would end its query again after each start."""

from collections.abc import Sequence
from dataclasses import replace

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name that every Spark program uses

from stream_processor.dead_letter_topic import dead_letter_topic
from stream_processor.pipeline import Pipeline
from stream_processor.sink import MAX_REQUEST_BYTES
from stream_processor.topic_limits import LargestRecords

BESIDE_PAYLOAD = 4_096
"""Bytes kept free for a record's key, its source and Kafka's own fields."""


def with_limits(pipelines: Sequence[Pipeline], largest: LargestRecords) -> list[Pipeline]:
    """The pipelines, knowing how large records their topics take. Raises KafkaException."""
    sinks = [each.definition.sink.topic for each in pipelines]
    letters = [dead_letter_topic(each.definition.source.topic) for each in pipelines]
    sizes = {topic: min(size, MAX_REQUEST_BYTES) for topic, size in largest.of([*sinks, *letters]).items()}
    return [
        replace(each, largest_record=sizes[sink], largest_letter=sizes[letter])
        for each, sink, letter in zip(pipelines, sinks, letters, strict=True)
    ]


def check_size(changes: DataFrame, pipeline: Pipeline) -> DataFrame:
    """Sets `problem` where the row is too large for the sink's topic. What `select` makes of a row is not measured."""
    if pipeline.largest_record is None or pipeline.shape == "aggregate" or pipeline.select:
        return changes
    room = max(pipeline.largest_record - BESIDE_PAYLOAD, 0)
    told = _told(F.octet_length("payload"), pipeline.definition.sink.topic, room)
    too_large = F.col("after").isNotNull() & (F.octet_length("payload") > room)
    return changes.withColumn("problem", F.coalesce(F.col("problem"), F.when(too_large, told)))


def _told(size: Column, topic: str, room: int) -> Column:
    return F.concat(
        F.lit("the row has "), size.cast("string"), F.lit(f" bytes, {topic} takes {room} (max.message.bytes)")
    )
