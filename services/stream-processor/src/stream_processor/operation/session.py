"""Starts the Spark session that all pipelines share."""

import os
import sys
from pathlib import Path
from typing import Any, cast

from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession

from stream_processor.errors import NotBuiltError
from stream_processor.settings import Settings

LOGGING = Path(__file__).resolve().parent / "log4j2.properties"
ROCKSDB = "spark.sql.streaming.stateStore.rocksdb"
EXCLUDED_RULES = (
    # Repeats the whole computation of a change's keys in a filter, only to skip changes without keys.
    "org.apache.spark.sql.catalyst.optimizer.InferFiltersFromGenerate",
    # Moves filters on `problem` below the steps that find problems, and writes each step's expressions into the next:
    # of seven pipelines over one topic that makes millions of nodes, anew at each checkpoint. No source takes filters.
    "org.apache.spark.sql.catalyst.optimizer.PushDownPredicates",
    "org.apache.spark.sql.catalyst.optimizer.PushPredicateThroughNonJoin",
)


COMPILE_ALL = "-XX:-DontCompileHugeMethods"
"""Spark makes one method of a query's whole stage; above 8,000 bytes of it Java would interpret it for ever."""


def start_session(master: str, jars: Path, driver_memory: str, java_options: str = "") -> SparkSession:
    """Starts Spark's JVM, or joins the one of this process. Raises NotBuiltError if Java or the jars are missing.

    The JVM ends with this process within a second, however that ends.
    """
    found = sorted(jars.glob("*.jar"))
    if not found:
        raise NotBuiltError(f"no jars in {jars}: run `mvn -f services/stream-processor/jvm/pom.xml package`")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master(master).appName("stream-processor")
    for name, value in configuration(found, driver_memory, java_options).items():
        builder = builder.config(name, value)
    if master.startswith("local"):
        # No executor elsewhere has to reach this driver.
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        builder = builder.config("spark.driver.host", "127.0.0.1").config("spark.driver.bindAddress", "127.0.0.1")
    try:
        spark = builder.getOrCreate()
    except PySparkRuntimeError as error:
        raise NotBuiltError(f"Spark does not start; is there a Java 17 on the path? ({error.getMessage()})") from error
    cast(Any, spark._jvm).io.statecast.spark.ParentWatch.start(os.getpid())
    return spark


def command_session(settings: Settings) -> SparkSession:
    """A session for a command that runs no query. Raises NotBuiltError."""
    return start_session("local[1]", settings.jars, settings.driver_memory, settings.java_options)


def configuration(jars: list[Path], driver_memory: str, java_options: str = "") -> dict[str, str]:
    """Spark's settings, each with its reason where it is not plain."""
    return {
        "spark.jars": ",".join(str(jar) for jar in jars),
        "spark.driver.memory": driver_memory,
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={LOGGING.as_uri()} {COMPILE_ALL} {java_options}",
        # Executors elsewhere keep Spark's own logging: this file need not be there.
        "spark.executor.extraJavaOptions": f"{COMPILE_ALL} {java_options}",
        "spark.ui.enabled": "false",
        # Not for streams; Spark would warn of each query.
        "spark.sql.adaptive.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        # Sort values are UTC text, and the Java functions take Instants, which have no calendar to convert.
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.datetime.java8API.enabled": "true",
        # A condition that cannot be computed for a row is null, so not true; it must not end the query.
        "spark.sql.ansi.enabled": "false",
        "spark.sql.streaming.stateStore.providerClass": (
            "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
        ),
        # A checkpoint on a local disk starts no process per file; see LocalFiles.java.
        "spark.hadoop.fs.AbstractFileSystem.file.impl": "io.statecast.spark.LocalFilesContext",
        # A checkpoint uploads what changed, not the whole store.
        f"{ROCKSDB}.changelogCheckpointing.enabled": "true",
        "spark.sql.optimizer.excludedRules": ",".join(EXCLUDED_RULES),
        # The same for what the optimizer concludes from filters: each of the steps would double the conclusions.
        "spark.sql.constraintPropagation.enabled": "false",
        # Which tasks run is what readiness is made of, so it is kept at each event and not now and then.
        "spark.ui.liveUpdate.period": "0",
        # What is over is of no use here, and would be looked through each time.
        "spark.ui.retainedJobs": "50",
        "spark.ui.retainedStages": "100",
        "spark.ui.retainedTasks": "500",
        "spark.sql.streaming.numRecentProgressUpdates": "20",
        # A line waits so long for others on its way to the grouping; Spark's 50 ms were most of a change's whole way.
        "spark.shuffle.streaming.networkBufferMaxWaitTimeMs": "10",
        # One bound for all stores of the process, or each brings its own caches and write buffers.
        f"{ROCKSDB}.boundedMemoryUsage": "true",
        f"{ROCKSDB}.maxMemoryUsageMB": "256",
        # Rows are forgotten with the next batch that has changes; Spark would run empty ones for it, without end.
        "spark.sql.streaming.noDataMicroBatches.enabled": "false",
        "spark.sql.streaming.metricsEnabled": "false",
        # Stopping a query waits so long for its tasks at most.
        "spark.sql.streaming.stopTimeout": "5s",
    }
