"""Composes the steps: from a topic's records to those of the sink's topic, and the dead letters among them."""

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name that every Spark program uses

from stream_processor.pipeline.fields import FieldPath, Kind, kind
from stream_processor.pipeline.pipeline import (
    AggregatePipeline,
    KeyPipeline,
    Pipeline,
    RoutePipeline,
    RowPipeline,
    StatefulPipeline,
    SummingPipeline,
    TableJoinPipeline,
    TotalsPipeline,
    inputs_of,
)
from stream_processor.spark_internals import previous_rows
from stream_processor.steps.aggregation import aggregate, differences
from stream_processor.steps.contributions import check_numbers, contributed, contributions
from stream_processor.steps.dead_letters import LETTER, address, explode_lines, is_letter, mark_letters
from stream_processor.steps.decode import change_problems, decode, knows_before, stated_before
from stream_processor.steps.event_lines import added_lines, as_known, first_events, newest_lines
from stream_processor.steps.functions import Functions
from stream_processor.steps.keyed_topic import entries, key_entries, retract, to_lines, to_records
from stream_processor.steps.outcomes import STATE, observe_read, passes, state_counts
from stream_processor.steps.projection import (
    ELEMENT,
    PARTITION,
    filter_keys,
    filter_rows,
    join,
    place,
    project,
)
from stream_processor.steps.record_keys import (
    elements,
    key_problems,
    key_text,
    single,
    usable_before,
)
from stream_processor.steps.running_totals import WHEN_NEW, mark_told, running_lines, total_records
from stream_processor.steps.table_join import joined_lines
from stream_processor.steps.truncation import truncation_counts
from stream_processor.steps.windows import check_windows, columns_of, follow_clock

SELECTED = "what select makes"
OF_RECORDS = ("value", "headers", "topic", "partition", "offset", "timestamp", "timestampType")
"""Kafka's columns that nothing needs once a record is a change."""
MAX_SOURCE = 256
"""Characters of the texts in a change's source, which goes into each of its records."""
TEXTS: tuple[Kind, ...] = ("string", "bytes", "message")
"""The kinds with values that have no bound of their own."""


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
    windowed = check_windows(checked, pipeline)
    return check_numbers(windowed, pipeline) if isinstance(pipeline, SummingPipeline) else windowed


def is_sound() -> Column:
    """Whether a checked record is neither set aside nor passed over."""
    return F.col("problem").isNull() & F.col("passed_over").isNull()


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
    """The records that the pipeline writes to its topic, which has so many partitions, and its dead letters.

    `sources` are the records of each of its source topics; `epoch` is its checkpoint's. Each record has its `topic`.
    """
    return address(_records(sources, pipeline, partitions, epoch, functions), pipeline)


def _records(
    sources: Sequence[DataFrame], pipeline: Pipeline, partitions: int, epoch: int, functions: Functions
) -> DataFrame:
    pairs = zip(sources, inputs_of(pipeline), strict=True)
    read = [_changes(records, reader, number, epoch, functions) for number, (records, reader) in enumerate(pairs)]
    if isinstance(pipeline, TableJoinPipeline):
        return to_records(joined_lines(read, pipeline, epoch, functions), partitions, functions)
    [changes] = read
    if pipeline.events:
        return _records_of_events(first_events(changes, pipeline), pipeline, partitions, epoch, functions)
    if isinstance(pipeline, RoutePipeline):
        return route(changes, pipeline, partitions, functions)
    if isinstance(pipeline, TotalsPipeline):
        summed = mark_told(contributions(changes, pipeline), pipeline)
        known = _known(entries(summed, pipeline, functions, beside=[WHEN_NEW]), pipeline, every_change=True)
        return total_records(running_lines(known, pipeline), pipeline, functions)
    if isinstance(pipeline, AggregatePipeline):
        beside = columns_of(pipeline.window)
        rows = entries(contributions(changes, pipeline), pipeline, functions, beside).drop("payload")
        known = follow_clock(_known(rows, pipeline, every_change=True), pipeline.window)
        lines = aggregate(differences(known, pipeline), pipeline, epoch, functions)
    else:
        known = _known(entries(key_entries(changes, pipeline), pipeline, functions), pipeline, every_change=False)
        lines = to_lines(retract(known), functions)
    return to_records(lines, partitions, functions)


def _records_of_events(
    events: DataFrame, pipeline: Pipeline, partitions: int, epoch: int, functions: Functions
) -> DataFrame:
    """Returns the records that the pipeline writes of events, each of which counts; no state tells what they were."""
    if isinstance(pipeline, RoutePipeline):
        return route(events, pipeline, partitions, functions)
    if isinstance(pipeline, KeyPipeline):
        return to_records(newest_lines(events, pipeline, epoch, functions), partitions, functions)
    summed = contributed(events, "after", "current", pipeline)
    if isinstance(pipeline, TotalsPipeline):
        return total_records(running_lines(as_known(mark_told(summed, pipeline)), pipeline), pipeline, functions)
    counted = added_lines(follow_clock(summed, pipeline.window), pipeline, functions)
    return to_records(aggregate(counted, pipeline, epoch, functions), partitions, functions)


def _changes(records: DataFrame, reader: Pipeline, number: int, epoch: int, functions: Functions) -> DataFrame:
    """Returns the sound changes of a source, with the message that `select` makes, and its letters.

    The progress counts them, and all other records. Of an exploded row the messages are still to be made, so that a
    letter may yet come of it.
    """
    decoded = decode(records, reader, functions)
    if reader.ordered_by_offset or reader.events:
        decoded = decoded.withColumn("epoch", F.lit(epoch).cast("long"))
    checked = checked_changes(decoded, reader)
    explodes = isinstance(reader, RoutePipeline) and reader.explode is not None
    if not isinstance(reader, AggregatePipeline) and not explodes:
        checked = _selected(checked, reader, functions)
    marked = mark_letters(checked, reader)
    read = observe_read(marked if explodes else marked.drop(*OF_RECORDS), reader, number)
    return read.where(is_sound() | is_letter())


def _selected(
    checked: DataFrame, pipeline: KeyPipeline | TotalsPipeline | RoutePipeline, functions: Functions
) -> DataFrame:
    """Adds the joined tables, and replaces `payload` by the result of `select` on `after`, unless it is too large."""
    if not pipeline.select:
        return join(checked, pipeline, functions)
    usable = checked.withColumn("after", F.when(is_sound(), F.col("after")))
    projected = project(join(usable, pipeline, functions), pipeline, functions)
    return projected.withColumn(
        "problem", F.coalesce("problem", _too_large(SELECTED, F.octet_length("payload"), pipeline))
    )


def _known(rows: DataFrame, pipeline: StatefulPipeline, every_change: bool) -> DataFrame:
    """Returns the lines of previous_rows; the progress tells how the records ended, and of truncations."""
    known = previous_rows(rows, pipeline.definition.forget_deleted, every_change)
    return known.observe(STATE, *state_counts(), *truncation_counts())


def route(changes: DataFrame, pipeline: RoutePipeline, partitions: int, functions: Functions) -> DataFrame:
    """Returns the records of checked and filtered changes: `key`, the group as text, and `value`, the encoded message.

    A change gives one when its operation is among the route's and it has a row that matches; with `explode`, one per
    element. Kafka's own partitioner places them by their key, unless the file says `sink.partition_by`: then they have
    a `partition`, which is null where the key decides. Records are written at least once: after a crash, those since
    the last checkpoint come again, and nothing in them shows it. A reader to which that matters compares keys and
    values, or reads a keyed topic.
    """
    passed = changes.where(passes(pipeline) | is_letter())
    if pipeline.explode is not None:
        exploded = explode_lines(passed, elements(F.col("after"), pipeline.explode), at="__at", entry=ELEMENT)
        passed = mark_letters(_selected(exploded, pipeline, functions), pipeline)
    written = place(passed.withColumn("__key", _key(pipeline)), pipeline, partitions, functions)
    partition = [F.col(PARTITION).alias("partition")] if pipeline.definition.sink.partition_by else []
    return written.select(
        F.col("__key").cast("binary").alias("key"), F.col("payload").alias("value"), *partition, LETTER
    )


def _key(pipeline: RoutePipeline) -> Column:
    if pipeline.explode is None or not pipeline.group.repeated:
        return key_text(F.col("after"), pipeline.group)
    [group] = pipeline.group.paths
    return single(F.col(ELEMENT), FieldPath(group.fields[len(pipeline.explode.fields) :]))
