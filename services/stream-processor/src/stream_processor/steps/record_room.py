"""Keeps records within what their topics take: one that Kafka refuses would end its query again after each start."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name that every Spark program uses

from stream_processor.definition.pipeline import Pipeline

BESIDE_PAYLOAD = 4_096
"""Bytes kept free for a record's key, its source and Kafka's own fields."""


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
