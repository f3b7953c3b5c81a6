"""Turns Kafka records into changes, or into the reason why they are none."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name that every Spark program uses

from stream_processor.functions import Functions


def decode(records: DataFrame, message: str, functions: Functions) -> DataFrame:
    """Adds `change` (the row of `message`) and `problem` (text); exactly one of the two is null."""
    decoded = records.withColumn("decoded", functions.decode(F.col("value"), message))
    return decoded.select(
        *records.columns, F.col("decoded.row").alias("change"), F.col("decoded.problem").alias("problem")
    )
