"""Starts one streaming query in a session of its own, so that each has its own number of shuffle partitions."""

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from stream_processor.definition.contract import Contract
from stream_processor.definition.duration import spark_text
from stream_processor.errors import ContractError, PipelineFileError, QueryFailedError
from stream_processor.operation.checkpoints import Checkpoints
from stream_processor.operation.plan import QueryPlan
from stream_processor.steps.dead_letters import dead_letters
from stream_processor.steps.flow import written_records
from stream_processor.steps.functions import Functions
from stream_processor.steps.sink import to_kafka
from stream_processor.steps.source import read_changes


class QueryStarter:
    """Starts planned queries on one Spark and one Kafka; checkpoints go to one place.

    All are prepared before the first is started, so that a file which Spark cannot follow stops the others in time.
    """

    def __init__(self, spark: SparkSession, contract: Contract, bootstrap: str, checkpoints: Checkpoints) -> None:
        self._spark = spark
        self._contract = contract
        self._bootstrap = bootstrap
        self._checkpoints = checkpoints

    def prepare(self, plan: QueryPlan) -> DataStreamWriter:
        """The query, checked by Spark as far as it can be without running; `start()` starts it and returns at once.

        Raises PipelineFileError for a file that Spark cannot follow, QueryFailedError for all else.
        """
        try:
            return self._prepare(plan)
        except ContractError as error:
            raise PipelineFileError(plan.pipelines[0].file, "source.message", str(error)) from error
        except PySparkException as error:
            raise _not_started(plan, error) from error

    def start(self, plan: QueryPlan, prepared: DataStreamWriter) -> StreamingQuery:
        """Starts the query and returns at once. Raises QueryFailedError."""
        try:
            return prepared.start()
        except PySparkException as error:
            raise _not_started(plan, error) from error

    def _prepare(self, plan: QueryPlan) -> DataStreamWriter:
        session = self._spark.newSession()
        if plan.shuffle_partitions:
            session.conf.set("spark.sql.shuffle.partitions", plan.shuffle_partitions)
        records = read_changes(session, self._bootstrap, plan.source_topic, plan.trigger)
        writer = to_kafka(self._transform(records, plan, session), self._bootstrap, plan.sink_topic)
        checkpoint = self._checkpoints.location(plan.name)
        writer = writer.queryName(plan.name).outputMode("update").option("checkpointLocation", checkpoint)
        return _triggered(writer, plan)

    def _transform(self, records: DataFrame, plan: QueryPlan, session: SparkSession) -> DataFrame:
        functions = Functions(session, self._contract, self._bootstrap)
        if plan.sets_aside:
            return dead_letters(records, plan.pipelines, functions)
        return written_records(records, plan.pipelines[0], plan.shuffle_partitions, plan.epoch, functions)


def _not_started(plan: QueryPlan, error: PySparkException) -> QueryFailedError:
    return QueryFailedError(f"the query {plan.name} cannot start: {str(error).splitlines()[0]}")


def _triggered(writer: DataStreamWriter, plan: QueryPlan) -> DataStreamWriter:
    if plan.realtime:
        realtime = {"realTime": spark_text(plan.trigger.checkpoint)}  # not in pyspark's own overloads
        return writer.trigger(**realtime)
    return writer.trigger(processingTime=spark_text(plan.trigger.interval))
