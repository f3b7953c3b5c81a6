"""A module per shape: it checks the pipeline's file, explains the pipeline, and makes the records that it writes.

Each has a class of `stream_processor.pipeline.pipeline.Pipeline`, the contract. Nothing but this module decides by a
shape's name.
"""

from pathlib import Path

from statecast_domains import pipeline_file
from statecast_domains.pipeline_file import PipelineFile
from stream_processor.pipeline.compile import Compilation
from stream_processor.pipeline.fields import Contract
from stream_processor.pipeline.pipeline import Pipeline
from stream_processor.shapes.aggregate import AggregatePipeline
from stream_processor.shapes.latest import LatestPipeline
from stream_processor.shapes.members import MembersPipeline
from stream_processor.shapes.route import RoutePipeline
from stream_processor.shapes.table_join import TableJoinPipeline
from stream_processor.shapes.totals import TotalsPipeline


def read(file: Path, contract: Contract) -> Pipeline:
    """Reads and checks a file. Raises PipelineFileError naming the file, the key and the nearest valid name."""
    return check(str(file), pipeline_file.read(file), contract)


def check(file: str, definition: PipelineFile, contract: Contract) -> Pipeline:
    """Checks a definition that came from `file`. Raises PipelineFileError."""
    return _shape(definition).compiled(Compilation(file, definition, contract))


def _shape(definition: PipelineFile) -> type[Pipeline]:
    keep = definition.keep
    if keep.route is not None:
        return TotalsPipeline if keep.route.totals is not None else RoutePipeline
    if keep.members is not None:
        return MembersPipeline
    if keep.aggregate is not None:
        return AggregatePipeline
    return TableJoinPipeline if definition.table_join is not None else LatestPipeline
