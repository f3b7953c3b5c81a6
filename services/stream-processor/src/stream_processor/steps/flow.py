"""Composes the steps: from a topic's records to those of the sink's topic, and to the dead letters among them."""

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name that every Spark program uses

from stream_processor.definition.pipeline import Pipeline
from stream_processor.errors import PipelineFileError
from stream_processor.steps.aggregation import aggregate
from stream_processor.steps.change_checks import check_change
from stream_processor.steps.contributions import contributions
from stream_processor.steps.decode import decode
from stream_processor.steps.differences import differences
from stream_processor.steps.entries import entries, key_entries
from stream_processor.steps.functions import Functions
from stream_processor.steps.insert_only import check_insert_only
from stream_processor.steps.joining import join
from stream_processor.steps.key_checks import check_keys
from stream_processor.steps.previous import with_previous
from stream_processor.steps.projection import project
from stream_processor.steps.record_room import check_size
from stream_processor.steps.retraction import retract, to_lines
from stream_processor.steps.routing import route
from stream_processor.steps.row_filter import filter_rows
from stream_processor.steps.sink import to_records
from stream_processor.steps.windows import check_windows


def checked_changes(changes: DataFrame, pipeline: Pipeline) -> DataFrame:
    """Decoded records with `before` and `after` as the pipeline sees them, and `problem` where it cannot use them.

    Raises PipelineFileError for a `where` that does not fit the row.
    """
    sound = check_insert_only(check_change(changes), pipeline)
    try:
        matching = filter_rows(sound, pipeline.definition.where)
    except AnalysisException as error:
        problem = (error.getMessage() or str(error)).splitlines()[0]
        raise PipelineFileError(pipeline.file, "where", problem) from error
    return check_size(check_windows(check_keys(matching, pipeline), pipeline), pipeline)


def written_records(
    records: DataFrame, pipeline: Pipeline, partitions: int, epoch: int, functions: Functions
) -> DataFrame:
    """The records that the pipeline writes to its topic, which has so many partitions; `epoch` is its checkpoint's."""
    checked = checked_changes(decode(records, pipeline, functions), pipeline)
    if pipeline.shape == "route":
        return route(checked, pipeline, functions)
    lines = _lines(checked.where(F.col("problem").isNull()), pipeline, epoch, functions)
    return to_records(lines, partitions, functions)


def _lines(changes: DataFrame, pipeline: Pipeline, epoch: int, functions: Functions) -> DataFrame:
    """`key`, `deleted` and `record` of what changes on the keyed topic."""
    forget = pipeline.definition.forget_deleted
    if pipeline.shape == "aggregate":
        contributed = entries(contributions(changes, pipeline), pipeline, functions).drop("payload")
        known = with_previous(contributed, forget, every_change=True)
        return aggregate(differences(known, pipeline), pipeline, epoch, functions)
    projected = project(join(changes, pipeline, functions), pipeline, functions)
    known = with_previous(entries(key_entries(projected, pipeline), pipeline, functions), forget, every_change=False)
    return to_lines(retract(known), functions)
