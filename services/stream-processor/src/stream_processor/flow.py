"""Composes the steps: from a topic's records to a keyed topic's, and to the dead letters among them."""

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame

from stream_processor.change_checks import check_change
from stream_processor.decode import decode
from stream_processor.encode import encode
from stream_processor.errors import PipelineFileError
from stream_processor.functions import Functions
from stream_processor.grouping import keep_newest
from stream_processor.pipeline import Pipeline
from stream_processor.retraction import check_keys, retract
from stream_processor.row_filter import filter_rows
from stream_processor.sink import to_records


def checked_changes(changes: DataFrame, pipeline: Pipeline) -> DataFrame:
    """Decoded records with `before` and `after` as the pipeline sees them, and `problem` where it cannot use them.

    Raises PipelineFileError for a `where` that does not fit the row.
    """
    sound = check_change(changes)
    try:
        matching = filter_rows(sound, pipeline.definition.where)
    except AnalysisException as error:
        problem = (error.getMessage() or str(error)).splitlines()[0]
        raise PipelineFileError(pipeline.file, "where", problem) from error
    return check_keys(matching, pipeline)


def keyed_records(records: DataFrame, pipeline: Pipeline, partitions: int, functions: Functions) -> DataFrame:
    """The records that the pipeline writes to its keyed topic, which has so many partitions."""
    decoded = decode(records, pipeline.change.full_name, functions)
    changes = retract(checked_changes(decoded, pipeline), pipeline)
    lines = keep_newest(encode(changes, pipeline.row.full_name, functions))
    return to_records(lines, partitions, functions)
