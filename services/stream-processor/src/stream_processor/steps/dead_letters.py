"""Sets aside the records that no pipeline can use. docs/operation.md says what the headers of a dead letter hold.

One stateless query per source topic applies the checks of all pipelines that read it, so that a record is written
once and not once per pipeline; the pipelines themselves pass over the same records by the same checks. Dead letters
are written at least once: after a crash, those since the last checkpoint come again.
"""

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name that every Spark program uses

from stream_processor.definition.pipeline import Pipeline
from stream_processor.steps.decode import decode
from stream_processor.steps.flow import check_messages, checked_changes
from stream_processor.steps.functions import Functions
from stream_processor.steps.keyed_topic import HEADERS
from stream_processor.steps.projection import KEY_MATCHES

REASON = "statecast-reason"
TOPIC = "statecast-topic"
PARTITION = "statecast-partition"
OFFSET = "statecast-offset"
PIPELINES = "statecast-pipelines"
TRUNCATED = "statecast-truncated"
REPLAYED = "statecast-replayed"

DEAD_LETTER_HEADERS = frozenset({REASON, TOPIC, PARTITION, OFFSET, PIPELINES, TRUNCATED})

MAX_REASON = 1_000
"""Characters; what follows is left out."""
MAX_PIPELINES = 4_000
"""Characters of the names of pipelines; what follows is left out."""
HEADERS_BYTES = 16_384
"""What these headers and Kafka's own fields take at most, with room to spare."""
DEFAULT_MAX_BYTES = 1_048_588
"""The `max.message.bytes` of a topic that does not set it."""
_UNDECODED = "undecoded"


def dead_letters(records: DataFrame, pipelines: Sequence[Pipeline], functions: Functions) -> DataFrame:
    """The records that at least one of the pipelines cannot use: `key`, `value` and `headers` of their dead letters.

    All pipelines read the topic that the records are of, in the same format. A letter that the dead-letter topic would
    refuse is cut.
    """
    names = [f"problem_{number}" for number in range(len(pipelines))]
    checked = decode(records, pipelines[0], functions).withColumnRenamed("problem", _UNDECODED)
    for name, pipeline in zip(names, pipelines, strict=True):
        of_pipeline = checked_changes(checked.withColumn("problem", F.col(_UNDECODED)), pipeline)
        of_pipeline = check_messages(of_pipeline, pipeline, functions)
        checked = of_pipeline.select(*checked.columns, _told(pipeline).alias(name))
    wrong = checked.where(F.coalesce(*names).isNotNull())
    with_headers = wrong.withColumn("headers", F.coalesce(F.col("headers"), F.array().cast(HEADERS)))
    own = F.array_compact(F.array(*_headers(names, pipelines)))
    return cut(with_headers, pipelines[0].max_dead_letter_bytes or DEFAULT_MAX_BYTES).select(
        "key", "value", F.concat("headers", own).cast(HEADERS).alias("headers")
    )


def _told(pipeline: Pipeline) -> Column:
    """The problem, but for a record whose key the pipeline does not take: it is of no use to it anyway."""
    if pipeline.definition.where_key is None:
        return F.col("problem")
    return F.when(F.col(KEY_MATCHES), F.col("problem"))


def cut(records: DataFrame, max_bytes: int) -> DataFrame:
    """Shortens `value`, drops `key` and `headers` over half of the room; `truncated` is the length of a cut value."""
    room = max(max_bytes - HEADERS_BYTES, 0)
    sizes = F.transform("headers", lambda each: F.length(each.getField("key")) * 4 + _size(each.getField("value")) + 16)
    beside = _size(F.col("key")) + F.aggregate(sizes, F.lit(0), lambda total, each: total + each)
    whole, light = _size(F.col("value")) + beside <= room, beside <= room // 2
    left = F.when(light, room - beside).otherwise(room)
    return records.withColumns(
        {
            "truncated": F.when(~whole, _size(F.col("value"))),
            "key": F.when(whole | light, F.col("key")),
            "value": F.when(whole, F.col("value")).otherwise(F.substring(F.col("value"), F.lit(1), left)),
            "headers": F.when(whole | light, F.col("headers")).otherwise(F.array().cast(HEADERS)),
        }
    )


def _size(value: Column) -> Column:
    return F.coalesce(F.octet_length(value), F.lit(0))


def _headers(names: Sequence[str], pipelines: Sequence[Pipeline]) -> list[Column]:
    reasons = F.array_distinct(F.array_compact(F.array(*names)))
    failing = [F.when(F.col(name).isNotNull(), pipeline.name) for name, pipeline in zip(names, pipelines, strict=True)]
    added = {
        REASON: F.left(F.array_join(reasons, "\n"), F.lit(MAX_REASON)),
        TOPIC: F.col("topic"),
        PARTITION: F.col("partition").cast("string"),
        OFFSET: F.col("offset").cast("string"),
        PIPELINES: F.left(F.concat_ws(",", *failing), F.lit(MAX_PIPELINES)),
        TRUNCATED: F.col("truncated").cast("string"),
    }
    return [
        F.when(text.isNotNull(), F.struct(F.lit(key).alias("key"), text.cast("binary").alias("value")))
        for key, text in added.items()
    ]
