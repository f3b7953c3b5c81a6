"""Makes the streaming query of a plan, in a session of its own: so each has its own number of shuffle partitions."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from stream_processor.definition.contract import Contract
from stream_processor.definition.pipeline import Pipeline
from stream_processor.definition.sections import spark_text
from stream_processor.errors import ContractError, PipelineFileError, QueryFailedError
from stream_processor.operation.checkpoints import Checkpoints
from stream_processor.operation.plan import QueryPlan
from stream_processor.spark_internals import plan_text
from stream_processor.steps.dead_letters import dead_letters
from stream_processor.steps.decode import read_changes
from stream_processor.steps.flow import written_records
from stream_processor.steps.functions import Functions
from stream_processor.steps.sink import to_kafka

EXPLAINED_PARTITIONS = 4
"""An explained plan is that of a sink with so many; the real number is known to Kafka alone."""
_DESCRIPTORS = re.compile(r"0x[0-9A-F]{64,}")


@dataclass(frozen=True)
class QueryStarter:
    """Starts planned queries on one Spark and one Kafka; checkpoints go to one place.

    All are prepared before the first is started, so that a file which Spark cannot follow stops the others in time.
    """

    spark: SparkSession
    contract: Contract
    bootstrap: str
    checkpoints: Checkpoints

    def prepare(self, plan: QueryPlan) -> DataStreamWriter:
        """The query, checked by Spark. Raises PipelineFileError for what it cannot follow, else QueryFailedError."""
        with _starting(plan):
            session = self.spark.newSession()
            if plan.shuffle_partitions:
                session.conf.set("spark.sql.shuffle.partitions", plan.shuffle_partitions)
            records = read_changes(session, self.bootstrap, plan.source_topic, plan.trigger)
            functions = Functions(session, self.contract, self.bootstrap)
            if plan.sets_aside:
                written = dead_letters(records, plan.pipelines, functions)
            else:
                written = written_records(records, plan.pipelines[0], plan.shuffle_partitions, plan.epoch, functions)
            writer = to_kafka(written, self.bootstrap, plan.sink_topic).queryName(plan.name).outputMode("update")
            writer = writer.option("checkpointLocation", self.checkpoints.location(plan.name))
            if not plan.realtime:
                return writer.trigger(processingTime=spark_text(plan.trigger.interval))
            realtime = {"realTime": spark_text(plan.trigger.checkpoint)}  # not in pyspark's own overloads
            return writer.trigger(**realtime)

    def start(self, plan: QueryPlan, prepared: DataStreamWriter) -> StreamingQuery:
        """Starts the query and returns at once. Raises QueryFailedError."""
        with _starting(plan):
            return prepared.start()


@contextmanager
def _starting(plan: QueryPlan) -> Iterator[None]:
    try:
        yield
    except ContractError as error:
        raise PipelineFileError(plan.pipelines[0].file, "source.message", str(error)) from error
    except PySparkException as error:
        raise QueryFailedError(f"the query {plan.name} cannot start: {str(error).splitlines()[0]}") from error


def physical_plan(pipeline: Pipeline, spark: SparkSession, contract: Contract, bootstrap: str) -> str:
    """How Spark would run a pipeline, without Kafka: nothing is read. Raises PipelineFileError as `prepare` does."""
    session = spark.newSession()
    session.conf.set("spark.sql.shuffle.partitions", EXPLAINED_PARTITIONS)
    records = read_changes(session, bootstrap, pipeline.source_topic, pipeline.definition.trigger)
    functions = Functions(session, contract, bootstrap)
    written = written_records(records, pipeline, EXPLAINED_PARTITIONS, 1, functions)
    return _DESCRIPTORS.sub("descriptors", plan_text(written))
