"""Makes the streaming query of a plan, in a session of its own: so each has its own number of shuffle partitions."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from statecast_domains.errors import PipelineFileError
from statecast_domains.values import spark_text
from stream_processor.errors import ContractError
from stream_processor.pipeline.fields import Contract
from stream_processor.pipeline.pipeline import Pipeline
from stream_processor.run.checkpoints import Checkpoints
from stream_processor.run.failures import failure_of
from stream_processor.run.plan import QueryPlan, topics_of
from stream_processor.run.plan import plan as plan_queries
from stream_processor.spark_internals import JVM_REFUSALS, plan_text
from stream_processor.steps.decode import read_changes
from stream_processor.steps.encode import to_kafka
from stream_processor.steps.flow import written_records
from stream_processor.steps.functions import Functions

EXPLAINED_PARTITIONS = 4
"""An explained plan is that of a sink with so many; the real number is known to Kafka alone."""
ROCKSDB = "spark.sql.streaming.stateStore.rocksdb"
MEGABYTE = 1024**2
MIN_STORE_MEGABYTES = 4
"""Spark counts in whole ones."""
NO_KAFKA = {"bootstrap.servers": "none:9092"}
"""Spark wants an address for a plan, too."""
Prepared = tuple[QueryPlan, DataStreamWriter]
"""A query that Spark has checked, and the writer that starts it."""


def prepare(
    plan: QueryPlan, spark: SparkSession, contract: Contract, kafka: Mapping[str, str], checkpoints: Checkpoints
) -> DataStreamWriter:
    """Returns the query, checked by Spark; `kafka` has the options of Java's clients.

    Raises PipelineFileError for a file that Spark cannot follow, else QueryFailedError.
    """
    with _starting(plan):
        written = _written(plan, spark, contract, kafka)
        writer = to_kafka(written, kafka, plan.pipeline.definition.sink.producer)
        writer = writer.queryName(plan.name).outputMode("update")
        writer = writer.option("checkpointLocation", checkpoints.location(plan.name))
        if not plan.realtime:
            return writer.trigger(processingTime=spark_text(plan.trigger.interval))
        realtime = {"realTime": spark_text(plan.trigger.checkpoint)}  # not in pyspark's own overloads
        return writer.trigger(**realtime)


def start(plan: QueryPlan, prepared: DataStreamWriter) -> StreamingQuery:
    """Starts the query and returns at once. Raises QueryFailedError."""
    with _starting(plan):
        return prepared.start()


def physical_plan(pipeline: Pipeline, spark: SparkSession, contract: Contract) -> str:
    """Returns how Spark would run a pipeline, without Kafka: nothing is read.

    Raises PipelineFileError as `prepare` does.
    """
    [planned] = plan_queries([pipeline], dict.fromkeys(topics_of([pipeline]), EXPLAINED_PARTITIONS))
    return plan_text(_written(planned, spark, contract, NO_KAFKA))


def _written(plan: QueryPlan, spark: SparkSession, contract: Contract, kafka: Mapping[str, str]) -> DataFrame:
    session = spark.newSession()
    session.conf.set("spark.sql.shuffle.partitions", plan.parallelism)
    for name, value in state_settings(plan).items():
        session.conf.set(f"{ROCKSDB}.{name}", value)
    reading = plan.parallelism, plan.starts, plan.first_checkpoint
    sources = [read_changes(session, kafka, topic, plan.pipeline, *reading) for topic in plan.source_topics]
    functions = Functions(session, contract, kafka)
    return written_records(sources, plan.pipeline, plan.sink_partitions, plan.epoch, functions)


def state_settings(plan: QueryPlan) -> dict[str, str]:
    """Returns Spark's settings for a state with its own memory, by names below ROCKSDB. Raises PipelineFileError.

    Each shuffle has a store per task. Half of its memory caches reads, the other half is two write buffers.
    """
    pipeline, stores = plan.pipeline, plan.shuffles * plan.parallelism
    state = pipeline.definition.state
    if state is None or not stores:
        return {}
    megabytes = state.memory // (stores * MEGABYTE)
    if megabytes < MIN_STORE_MEGABYTES:
        problem = f"is too little for {stores} parts of the state: give {stores * MIN_STORE_MEGABYTES}MiB at least"
        raise PipelineFileError(pipeline.file, "state.memory", problem)
    return {
        "boundedMemoryUsage": "false",
        "blockCacheSizeMB": str(megabytes // 2),
        "writeBufferSizeMB": str(megabytes // 4),
        "maxWriteBufferNumber": "2",
    }


@contextmanager
def _starting(plan: QueryPlan) -> Iterator[None]:
    try:
        yield
    except ContractError as error:
        raise PipelineFileError(plan.pipeline.file, "source.message", str(error)) from error
    except JVM_REFUSALS as error:
        failure = failure_of(error)
        raise type(failure)(f"the query {plan.name} cannot start: {failure}") from error
