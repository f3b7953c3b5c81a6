"""Shows how Spark would run a pipeline, without Kafka: the plan is made, and nothing is read."""

import re
from typing import Any, cast

from pyspark.sql import SparkSession

from stream_processor.definition.contract import Contract
from stream_processor.definition.pipeline import Pipeline
from stream_processor.steps.flow import written_records
from stream_processor.steps.functions import Functions
from stream_processor.steps.source import read_changes

PARTITIONS = 4
"""The plan is that of a sink with so many; the real number is known to Kafka alone."""

_DESCRIPTORS = re.compile(r"0x[0-9A-F]{64,}")


def physical_plan(pipeline: Pipeline, spark: SparkSession, contract: Contract, bootstrap: str) -> str:
    """Spark's physical plan. Raises PipelineFileError for a file that Spark cannot follow."""
    session = spark.newSession()
    session.conf.set("spark.sql.shuffle.partitions", PARTITIONS)
    source = pipeline.definition.source.topic
    records = read_changes(session, bootstrap, source, pipeline.definition.trigger)
    written = written_records(records, pipeline, PARTITIONS, 1, Functions(session, contract, bootstrap))
    frame = cast(Any, written)._jdf.queryExecution()
    plan = str(cast(Any, session._jvm).PythonSQLUtils.explainString(frame, "simple"))
    return _DESCRIPTORS.sub("descriptors", plan)
