"""Makes the archive of classes that Spark's JVM starts from: it maps them, and reads, parses and checks no jars.

The classes are those of a JVM that has worked: it plans and runs the queries of some pipelines, on a few lines of text
and without Kafka. They lie beside the jars of jvm/, and fit the Java and the jars that they were made of; with others
Java starts as if there were none, and says so on standard error.
"""

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import structlog
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.readwriter import DataStreamWriter

from stream_processor import spark_internals
from stream_processor.errors import NotBuiltError
from stream_processor.pipeline.fields import Contract
from stream_processor.pipeline.pipeline import Pipeline
from stream_processor.run.checkpoints import open_checkpoints
from stream_processor.run.plan import QueryPlan, plan, topics_of
from stream_processor.run.queries import prepare
from stream_processor.run.session import CLASS_ARCHIVE, start_session
from stream_processor.settings import Settings
from stream_processor.steps.encode import to_kafka
from stream_processor.steps.flow import written_records
from stream_processor.steps.functions import Functions

log = structlog.get_logger()

PARTITIONS, SLOTS = 2, 12
NO_KAFKA = {
    "bootstrap.servers": "127.0.0.1:1",
    "default.api.timeout.ms": "500",
    "request.timeout.ms": "400",
    "max.block.ms": "500",
}
"""Options of clients that do all but reach a broker."""
KAFKA_COLUMNS = (
    "cast(value as binary) key",
    "cast(value as binary) value",
    "'lines' topic",
    "0 partition",
    "0L offset",
    "now() timestamp",
    "0 timestampType",
    "cast(null as array<struct<key:string,value:binary>>) headers",
)
"""A line of text as Spark's Kafka source gives a record."""
UNTOLD = "-Xlog:cds*=error:stderr"
"""Java names each class that no archive can have: those of signed jars, and of its own making."""


def archive_classes(pipelines: Sequence[Pipeline], contract: Contract, settings: Settings) -> Path:
    """Makes the archive anew, by the queries of these pipelines, and returns its file. Raises ServiceError."""
    archive = settings.jars / CLASS_ARCHIVE
    archive.unlink(missing_ok=True)
    spark = start_session(settings, f"local[{SLOTS}]", f"-XX:ArchiveClassesAtExit={archive} {UNTOLD}")
    # It would warn of the broker that is not there, with every attempt.
    spark.sparkContext.setLogLevel("OFF")
    with TemporaryDirectory() as directory:
        checkpoints = open_checkpoints(directory, lambda: spark)
        queries = [plan([each], dict.fromkeys(topics_of([each]), PARTITIONS))[0] for each in pipelines]
        _run(prepare(queries[0], spark, contract, NO_KAFKA, checkpoints))
        for query in queries:
            _run(_of_lines(query, spark.newSession(), contract, Path(directory)))
    spark.stop()
    spark_internals.end_jvm()
    if not archive.exists():
        raise NotBuiltError(f"Java has made no {archive}: its own words are above")
    log.info("archived", file=str(archive), megabytes=archive.stat().st_size >> 20)
    return archive


def _run(prepared: DataStreamWriter) -> None:
    """Runs a query until it finds no broker, to read from or to write to."""
    query = prepared.start()
    with suppress(StreamingQueryException):
        query.awaitTermination()


def _of_lines(plan: QueryPlan, session: SparkSession, contract: Contract, directory: Path) -> DataStreamWriter:
    """Makes a query's steps on a line of text, in one micro-batch: no pipeline can use it, so it is a dead letter."""
    session.conf.set("spark.sql.shuffle.partitions", PARTITIONS)
    lines = directory / "lines"
    lines.mkdir(exist_ok=True)
    (lines / "line").write_text("no change")
    records = session.readStream.text(str(lines)).selectExpr(*KAFKA_COLUMNS)
    functions = Functions(session, contract, NO_KAFKA)
    written = written_records([records] * len(plan.source_topics), plan.pipeline, PARTITIONS, 1, functions)
    writer = to_kafka(written, NO_KAFKA, plan.pipeline.definition.sink.producer).outputMode("update")
    place = str(directory / f"{plan.name}-of-lines")
    return writer.option("checkpointLocation", place).trigger(availableNow=True)
