"""Turns Kafka records into changes, or into the reason why they are none."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name that every Spark program uses

from stream_processor.definition.pipeline import Pipeline
from stream_processor.steps.debezium_json import decode_debezium
from stream_processor.steps.functions import Functions


def decode(records: DataFrame, pipeline: Pipeline, functions: Functions) -> DataFrame:
    """Adds `change` (the row of the pipeline's change message), `payload` and `problem` (text).

    `change` or `problem` is null. `payload` is the encoded row after the change, with the fields that this build's
    contract does not know, as far as the format carries them; null when there is no such row.

    Tombstones, which are records with a key and no value, are left out: a connector writes one after each delete so
    that compaction forgets the row, and says nothing new with it.
    """
    changes = records.where(F.col("value").isNotNull() | F.col("key").isNull())
    if pipeline.definition.source.format == "debezium-json":
        return decode_debezium(changes, pipeline, functions)
    decoded = changes.withColumn("decoded", functions.decode_change(F.col("value"), pipeline.change.full_name))
    parts = {"change": "row", "payload": "payload", "problem": "problem"}
    return decoded.select(*records.columns, *[F.col(f"decoded.{part}").alias(name) for name, part in parts.items()])
