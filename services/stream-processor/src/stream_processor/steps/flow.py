"""Composes the steps: from a topic's records to those of the sink's topic, and the dead letters among them."""

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name that every Spark program uses

from stream_processor.pipeline.pipeline import Pipeline
from stream_processor.steps.dead_letters import address, mark_letters
from stream_processor.steps.decode import change_problems, decode, knows_before, stated_before
from stream_processor.steps.event_rows import first_events
from stream_processor.steps.functions import Functions
from stream_processor.steps.keys import key_problems, usable_before
from stream_processor.steps.outcomes import observe_read, with_outcome
from stream_processor.steps.projection import filter_keys, filter_rows, join, project

SELECTED = "what select makes"
OF_RECORDS = ("value", "headers", "topic", "partition", "offset", "timestamp", "timestampType")
"""Kafka's columns that nothing needs once a record is a change."""
MAX_SOURCE = 256
"""Characters of the texts in a change's source, which goes into each of its records."""


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
    return pipeline.checked(checked)


def is_sound() -> Column:
    """Returns whether a checked record is neither set aside nor passed over."""
    return F.col("problem").isNull() & F.col("passed_over").isNull()


def _size_problems(pipeline: Pipeline) -> list[Column]:
    """Returns why a record would be too large for the sink's topic, as far as the change itself tells.

    A record that Kafka refuses would end its query again after each start.
    """
    texts = F.concat_ws("", "change.source.table", "change.source.transaction_id")
    problems = [F.when(F.length(texts) > MAX_SOURCE, f"source has more than {MAX_SOURCE} characters")]
    if pipeline.payload_rows and not pipeline.select:
        problems.append(_too_large("the row", F.octet_length("payload") * pipeline.payload_rows, pipeline))
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
    """Returns the records that the pipeline writes to its topic, which has so many partitions, and its dead letters.

    `sources` are the records of each of its source topics; `epoch` is its checkpoint's. Each record has its `topic`.
    """
    pairs = zip(sources, pipeline.readers, strict=True)
    read = [_changes(records, reader, number, epoch, functions) for number, (records, reader) in enumerate(pairs)]
    if pipeline.events:
        read = [first_events(each, pipeline) for each in read]
    return address(pipeline.records(read, partitions, epoch, functions), pipeline, functions)


def _changes(records: DataFrame, reader: Pipeline, number: int, epoch: int, functions: Functions) -> DataFrame:
    """Returns the changes of a source, with the message that `select` makes, and its letters.

    Where a state knows rows, its lines are yet to be counted by observe_read, for they are narrow; otherwise the
    progress counts all records here, and the sound ones go on. Of an exploded row the messages are still to be made, so
    that a letter may yet come of it.
    """
    decoded = decode(records, reader, functions)
    if reader.ordered_by_offset or reader.events:
        decoded = decoded.withColumn("epoch", F.lit(epoch).cast("long"))
    checked = checked_changes(decoded, reader)
    if reader.explode is not None:
        read = mark_letters(checked, reader)
    else:
        read = mark_letters(selected(checked, reader, functions), reader).drop(*OF_RECORDS)
    ended = with_outcome(read, reader)
    return ended if reader.knows_rows else observe_read(ended, number)


def selected(checked: DataFrame, pipeline: Pipeline, functions: Functions) -> DataFrame:
    """Adds the joined tables, and replaces `payload` by the result of `select` on `after`, unless it is too large."""
    if not pipeline.select:
        return join(checked, pipeline, functions)
    usable = checked.withColumn("after", F.when(is_sound(), F.col("after")))
    projected = project(join(usable, pipeline, functions), pipeline, functions)
    return projected.withColumn(
        "problem", F.coalesce("problem", _too_large(SELECTED, F.octet_length("payload"), pipeline))
    )
