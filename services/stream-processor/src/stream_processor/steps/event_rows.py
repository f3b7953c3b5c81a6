"""Reads events: each record of the topic is a row of its own, which never changes (ADR 0044).

Nothing is ever taken back, so that no state holds former rows. The state has an entry per key of the sink at
most, and one per id where events may come twice. It is part of the checkpoint, as the offsets are: each record counts
once.
"""

from datetime import timedelta

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name that every Spark program uses

from stream_processor.pipeline.pipeline import Pipeline
from stream_processor.spark_internals import stateful
from stream_processor.steps.dead_letters import letter_key
from stream_processor.steps.functions import Functions
from stream_processor.steps.keys import event_time, key_text
from stream_processor.steps.outcomes import observe_state
from stream_processor.steps.table_rows import READERS, rows_as_changes, value_problem
from stream_processor.steps.windows import CLOCK

MAX_PARTITIONS = 1 << 14
"""Partitions of a topic of events: an event's place is its offset, times this, plus its partition."""
MAX_OFFSET = 1 << 49
NO_VALUE = "the value is null, and an event is a value"
DELETION = "the value says that a row is deleted, and an event never is: rows are read by format: table"


def decode_events(records: DataFrame, pipeline: Pipeline, functions: Functions) -> DataFrame:
    """Adds `change`, a struct(operation, source, before, after) of a row that is new, and the columns that decode adds.

    `sequence` is the record's place, which no other of its topic has, and rises within a partition. `epoch` is null.
    The source has the record's time.
    """
    read = READERS[pipeline.definition.source.row_values or "protobuf"](records, pipeline.row, functions)
    no_place = (F.col("partition") >= MAX_PARTITIONS) | (F.col("offset") >= MAX_OFFSET)
    problem = F.coalesce(
        F.when(F.col("value").isNull(), NO_VALUE),
        F.when(F.col("leaves"), DELETION),
        F.when(no_place, f"the topic has more than {MAX_PARTITIONS:,} partitions, or {MAX_OFFSET:,} records in one"),
        value_problem(pipeline),
    )
    read = read.withColumns({"problem": problem, "sequence": F.col("offset") * MAX_PARTITIONS + F.col("partition")})
    return rows_as_changes(read, F.lit("OPERATION_CREATE"), F.lit(True), records.columns, pipeline)


def first_events(events: DataFrame, pipeline: Pipeline) -> DataFrame:
    """Returns the events without those that repeat one before, which the progress counts. Letters pass."""
    same = pipeline.definition.source.deduplicate
    if same is None or pipeline.deduplicate is None:
        return events
    identity = F.coalesce(letter_key(), key_text(F.col("after"), pipeline.deduplicate))
    identified = events.withColumns({"identity": identity, "time": event_time(pipeline)})
    known = stateful("state.Deduplicate", identified, same.within // timedelta(microseconds=1), CLOCK in events.columns)
    return observe_state(known).where("first").select(*events.columns)
