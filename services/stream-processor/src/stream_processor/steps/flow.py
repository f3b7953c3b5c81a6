"""Composes the steps: from a topic's records to those of the sink's topic, and to the dead letters among them."""

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name that every Spark program uses

from stream_processor.definition.contract import FieldPath, Kind, kind
from stream_processor.definition.pipeline import (
    AggregatePipeline,
    Pipeline,
    RoutePipeline,
    RowPipeline,
    TableJoinPipeline,
    TotalsPipeline,
    inputs_of,
)
from stream_processor.spark_internals import previous_rows
from stream_processor.steps.aggregation import aggregate, contributions, differences
from stream_processor.steps.decode import change_problems, decode, knows_before, stated_before
from stream_processor.steps.functions import Functions
from stream_processor.steps.keyed_topic import entries, key_entries, retract, to_lines, to_records
from stream_processor.steps.projection import (
    ELEMENT,
    LARGEST,
    PARTITION,
    filter_keys,
    filter_rows,
    join,
    measure,
    place,
    project,
)
from stream_processor.steps.record_keys import (
    HORIZON,
    check_windows,
    elements,
    key_problems,
    key_text,
    single,
    usable_before,
)
from stream_processor.steps.running_totals import WHEN_NEW, mark_told, running_lines, total_records
from stream_processor.steps.table_join import joined_lines
from stream_processor.steps.truncation import observe_truncations

MAX_SOURCE = 256
"""Characters of the texts in a change's source, which goes into each of its records."""
TEXTS: tuple[Kind, ...] = ("string", "bytes", "message")
"""The kinds whose values have no bound of their own."""


def checked_changes(changes: DataFrame, pipeline: Pipeline) -> DataFrame:
    """Adds the pipeline's `before` and `after`, `knows_before` and `problem`.

    Raises PipelineFileError for a wrong `where`.
    """
    rows = changes.withColumns(
        {"before": stated_before(pipeline), "after": F.col("change.after"), "knows_before": knows_before(pipeline)}
    )
    rows = rows.withColumn("before", usable_before(pipeline))
    problems = [*change_problems(pipeline), *key_problems(pipeline), *_size_problems(pipeline)]
    matching = filter_rows(filter_keys(rows, pipeline), pipeline)
    checked = matching.withColumn("problem", F.when(F.col("passed_over").isNull(), F.coalesce("problem", *problems)))
    return check_windows(checked, pipeline)


def sound(checked: DataFrame) -> DataFrame:
    """The changes among checked records: neither set aside nor passed over."""
    return checked.where(F.col("problem").isNull() & F.col("passed_over").isNull())


def check_messages(checked: DataFrame, pipeline: Pipeline, functions: Functions) -> DataFrame:
    """Sets `problem` where a message that `select` makes of the row is too large for the sink's topic.

    The pipeline's own query leaves these out by itself, once it has made them.
    """
    if not isinstance(pipeline, RowPipeline) or not pipeline.select:
        return checked
    measured = measure(checked, pipeline, functions)
    return measured.withColumn(
        "problem", F.coalesce("problem", _too_large("what select makes", F.col(LARGEST), pipeline))
    )


def _size_problems(pipeline: Pipeline) -> list[Column]:
    """Why a record would be too large for the sink's topic, as far as the change itself tells.

    A record that Kafka refuses would end its query again after each start.
    """
    texts = F.concat_ws("", "change.source.table", "change.source.transaction_id")
    problems = [F.when(F.length(texts) > MAX_SOURCE, f"source has more than {MAX_SOURCE} characters")]
    rows = 1
    if isinstance(pipeline, AggregatePipeline):
        # The texts of a group's message may be of as many rows.
        rows = sum(each.function in ("min", "max") and kind(each.field) in TEXTS for each in pipeline.aggregates)
        # Sets have half of the record.
        rows *= 2 if any(each.limit for each in pipeline.aggregates) else 1
    if rows and not (isinstance(pipeline, RowPipeline) and pipeline.select):
        problems.append(_too_large("the row", F.octet_length("payload") * rows, pipeline))
    return problems


def _too_large(what: str, size: Column, pipeline: Pipeline) -> Column:
    room = pipeline.max_payload_bytes
    if room is None:
        return F.lit(None).cast("string")
    takes = F.lit(f" bytes, {pipeline.sink_topic} takes {room} (max.message.bytes)")
    return F.when(
        F.col("after").isNotNull() & (size > room), F.concat(F.lit(f"{what} has "), size.cast("string"), takes)
    )


def written_records(
    sources: Sequence[DataFrame], pipeline: Pipeline, partitions: int, epoch: int, functions: Functions
) -> DataFrame:
    """The records that the pipeline writes to its topic, which has so many partitions; `epoch` is its checkpoint's.

    `sources` are the records of each of its source topics.
    """
    pairs = zip(sources, inputs_of(pipeline), strict=True)
    records = [_checked_records(read, reader, epoch, functions) for read, reader in pairs]
    if isinstance(pipeline, TableJoinPipeline):
        lines = joined_lines([sound(each) for each in records], pipeline, epoch, functions)
        return to_records(lines, partitions, functions)
    [checked] = records
    if isinstance(pipeline, RoutePipeline):
        return route(checked, pipeline, partitions, functions)
    changes = sound(checked)
    forget = pipeline.definition.forget_deleted
    if isinstance(pipeline, TotalsPipeline):
        projected = project(join(contributions(changes, pipeline), pipeline, functions), pipeline, functions)
        rows = entries(mark_told(projected, pipeline), pipeline, functions, beside=[WHEN_NEW])
        known = observe_truncations(previous_rows(rows, forget, every_change=True))
        return total_records(running_lines(known, pipeline), pipeline, functions)
    if isinstance(pipeline, AggregatePipeline):
        beside = [HORIZON] if pipeline.window is not None else []
        rows = entries(contributions(changes, pipeline), pipeline, functions, beside).drop("payload")
        known = observe_truncations(previous_rows(rows, forget, every_change=True))
        lines = aggregate(differences(known, pipeline), pipeline, epoch, functions)
    else:
        projected = project(join(changes, pipeline, functions), pipeline, functions)
        rows = entries(key_entries(projected, pipeline), pipeline, functions)
        known = observe_truncations(previous_rows(rows, forget, every_change=False))
        lines = to_lines(retract(known), functions)
    return to_records(lines, partitions, functions)


def _checked_records(records: DataFrame, reader: Pipeline, epoch: int, functions: Functions) -> DataFrame:
    decoded = decode(records, reader, functions)
    if reader.ordered_by_offset:
        decoded = decoded.withColumn("epoch", F.lit(epoch).cast("long"))
    return checked_changes(decoded, reader)


def route(changes: DataFrame, pipeline: RoutePipeline, partitions: int, functions: Functions) -> DataFrame:
    """The records of checked and filtered changes: `key`, the group as text, and `value`, the encoded message.

    A change gives one when its operation is among the route's and it has a row that matches; with `explode`, one per
    element. Kafka's own partitioner places them by their key, unless the file says `sink.partition_by`: then they have
    a `partition`, which is null where the key decides. Records are written at least once: after a crash, those
    since the last checkpoint come again, and nothing in them shows it. A reader to whom that matters compares keys and
    values, or reads a keyed topic.
    """
    passed = sound(changes).where(F.col("after").isNotNull() & F.col("change.operation").isin(*pipeline.operations))
    joined = join(passed, pipeline, functions)
    if pipeline.explode is not None:
        joined = joined.withColumn(ELEMENT, F.explode(elements(F.col("after"), pipeline.explode)))
    placed = place(joined.withColumn("__key", _key(pipeline)), pipeline, partitions, functions)
    written = project(placed, pipeline, functions)
    partition = [F.col(PARTITION).alias("partition")] if pipeline.definition.sink.partition_by else []
    return written.select(F.col("__key").cast("binary").alias("key"), F.col("payload").alias("value"), *partition)


def _key(pipeline: RoutePipeline) -> Column:
    if pipeline.explode is None or not pipeline.group.repeated:
        return key_text(F.col("after"), pipeline.group)
    [group] = pipeline.group.paths
    return single(F.col(ELEMENT), FieldPath(group.fields[len(pipeline.explode.fields) :]))
