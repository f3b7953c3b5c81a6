"""Sets aside the records that no pipeline can use: what a dead letter looks like, and how one is found.

A dead letter stands on `<source topic>.dead-letter` with the key, value and headers of the original record, and

- `statecast-reason`: why it cannot be used, as text; one line per pipeline when they differ
- `statecast-topic`, `statecast-partition`, `statecast-offset`: where it stands, numbers as decimal text
- `statecast-pipelines`: the names of the pipelines that cannot use it, separated by commas

One stateless query per source topic applies the checks of all pipelines that read it, so that a record is written
once and not once per pipeline; the pipelines themselves pass over the same records by the same checks. Dead letters
are written at least once: after a crash, those since the last checkpoint come again.
"""

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name that every Spark program uses

from stream_processor.decode import decode
from stream_processor.flow import checked_changes
from stream_processor.functions import Functions
from stream_processor.pipeline import Pipeline
from stream_processor.sink import HEADERS

REASON = "statecast-reason"
TOPIC = "statecast-topic"
PARTITION = "statecast-partition"
OFFSET = "statecast-offset"
PIPELINES = "statecast-pipelines"

_UNDECODED = "undecoded"


def dead_letters(records: DataFrame, pipelines: Sequence[Pipeline], functions: Functions) -> DataFrame:
    """The records that at least one of the pipelines cannot use: `key`, `value` and `headers` of their dead letters.

    All pipelines read the topic that the records are of, and take its values for the same message.
    """
    names = [f"problem_{number}" for number in range(len(pipelines))]
    decoded = decode(records, pipelines[0].change.full_name, functions)
    checked = decoded.withColumnRenamed("problem", _UNDECODED)
    for name, pipeline in zip(names, pipelines, strict=True):
        found = checked_changes(checked.withColumn("problem", F.col(_UNDECODED)), pipeline)
        checked = found.select(*checked.columns, F.col("problem").alias(name))
    wrong = checked.where(F.coalesce(*names).isNotNull())
    return wrong.select("key", "value", _headers(names, pipelines).alias("headers"))


def _headers(names: Sequence[str], pipelines: Sequence[Pipeline]) -> Column:
    reasons = F.array_distinct(F.array_compact(F.array(*names)))
    failing = [F.when(F.col(name).isNotNull(), pipeline.name) for name, pipeline in zip(names, pipelines, strict=True)]
    added = {
        REASON: F.array_join(reasons, "\n"),
        TOPIC: F.col("topic"),
        PARTITION: F.col("partition").cast("string"),
        OFFSET: F.col("offset").cast("string"),
        PIPELINES: F.concat_ws(",", *failing),
    }
    own = [F.struct(F.lit(key).alias("key"), text.cast("binary").alias("value")) for key, text in added.items()]
    return F.concat(F.coalesce(F.col("headers"), F.array().cast(HEADERS)), F.array(*own).cast(HEADERS))
