"""Says what each changed row stands for now, and keeps of a change only what the state and the sink need."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name that every Spark program uses

from stream_processor.definition.contract import FieldPath
from stream_processor.definition.pipeline import Pipeline
from stream_processor.steps.encode import source_part
from stream_processor.steps.functions import Functions
from stream_processor.steps.record_keys import keys, single


def key_entries(changes: DataFrame, pipeline: Pipeline) -> DataFrame:
    """Adds `current` and `stated` of latest and members: the keys of `after`, and those of `before`."""
    return changes.withColumns({"current": keys(F.col("after"), pipeline), "stated": keys(F.col("before"), pipeline)})


def entries(changes: DataFrame, pipeline: Pipeline, functions: Functions) -> DataFrame:
    """One line per row that a change speaks of, with these columns and those that begin with `window_`.

    - `primary_key` (text), `epoch`, `sequence`: which row, and where in its history
    - `current`: what the row stands for after the change; empty when it is gone or does not match
    - `stated`: what the change itself says that the row stood for before it; `complete` is false when it cannot know
    - `source`: the encoded StateRecord with nothing but its source; `payload`: the encoded row, null when it is gone

    A change of the primary key speaks of two rows: one goes, and one comes. `changes` has `current` and `stated`.
    """
    if pipeline.primary_key is None:
        raise ValueError(f"{pipeline.name} remembers no rows")
    nothing = F.filter("current", lambda _: F.lit(False))
    old, new = _key("before", pipeline.primary_key), _key("after", pipeline.primary_key)
    gone = F.struct(old.alias("primary_key"), nothing.alias("current"), F.col("stated"))
    come = F.struct(new.alias("primary_key"), F.col("current"), nothing.alias("stated"))
    same = F.struct(F.coalesce(new, old).alias("primary_key"), F.col("current"), F.col("stated"))
    place = F.col("change.source")
    beside = [name for name in changes.columns if name.startswith("window_")]
    split = changes.select(
        F.explode(F.when(old != new, F.array(gone, come)).otherwise(F.array(same))).alias("row"),
        place.getField("epoch").alias("epoch"),
        place.getField("log_sequence_number").alias("sequence"),
        (F.col("change.before").isNotNull() | (F.col("change.operation") == "OPERATION_CREATE")).alias("complete"),
        source_part(place, functions).alias("source"),
        F.when(F.size("current") > 0, F.col("payload")).alias("payload"),
        *beside,
    )
    return split.select("row.*", "epoch", "sequence", "complete", "source", "payload", *beside)


def _key(row: str, path: FieldPath) -> Column:
    """The primary key as the change says it, whether the row matches the condition or not."""
    return single(F.col(f"change.{row}"), path)
