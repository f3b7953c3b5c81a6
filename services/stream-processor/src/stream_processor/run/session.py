"""Starts the Spark session that all pipelines share, and stops it with their queries, within a time limit."""

import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from threading import Thread

import structlog
import yaml
from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from stream_processor import spark_internals
from stream_processor.errors import NotBuiltError
from stream_processor.settings import Settings
from stream_processor.spark_internals import JVM_ERRORS, jvm_reason

log = structlog.get_logger()

LOGGING = Path(__file__).with_name("log4j2.properties")
SPARK_SETTINGS = Path(__file__).with_name("spark.yaml")
COMPILE_ALL = "-XX:-DontCompileHugeMethods"
"""Spark makes a query's whole stage one method; Java would never compile one above 8,000 bytes."""
CODE_CACHE = "-XX:ReservedCodeCacheSize=256m"
"""Room for the compiled code of tens of pipelines. Java's own 48 MB, where it has but one compiler, are full of ten."""
COLLECTOR = "-XX:G1HeapRegionSize=4m -XX:InitiatingHeapOccupancyPercent=70 -XX:-G1UseAdaptiveIHOP"
"""Marks the heap when it is 70 % full (ADR 0059).

Half of a gigabyte lives with twenty pipelines, so Java would mark without end: at 45 %, and after each object of half a
region of 1 MB.
"""
JVM_LOG = "-Xlog:disable -Xlog:all=warning:stderr"
"""The warnings of Java itself, as of an archive that does not fit; by default they go between plans on stdout."""
CLASS_ARCHIVE = "classes.jsa"
"""The name of the archive beside the jars; see class_archive.py."""
ALONE = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
"""No executor elsewhere has to reach this driver."""
LOST_SOON = {
    "spark.executor.heartbeatInterval": "2s",
    "spark.storage.blockManagerHeartbeatTimeoutMs": "8s",
    "spark.network.timeoutInterval": "1s",
}
"""Gives an executor elsewhere up that has sent no heartbeat for 8 s (ADR 0054).

Spark waits for two minutes and looks once a minute, and the queries of a machine that hangs would stand still for so
long.
"""
MAX_STOP_S = 8.0


def launch(settings: Settings) -> None:
    """Begins to start Spark's JVM, beside all that comes before start_session, which joins it. Raises NotBuiltError."""
    of_jvm = configuration(settings, not settings.master or _is_local(settings.master))
    Thread(target=_launch, args=(of_jvm,), name="launch", daemon=True).start()


def _launch(of_jvm: Mapping[str, str]) -> None:
    # start_session tries it again then, and tells.
    with suppress(PySparkRuntimeError):
        spark_internals.launch_jvm(of_jvm)


def start_session(settings: Settings, master: str = "local[1]", archiving: str = "") -> SparkSession:
    """Starts or joins Spark's JVM, by default for no query; it ends within a second after us. Raises NotBuiltError.

    `archiving` is Java's option to make an archive of classes; without it, one that is there is used.
    """
    builder = SparkSession.builder.master(master).appName("stream-processor")
    for name, value in configuration(settings, _is_local(master), archiving).items():
        builder = builder.config(name, value)
    spark_internals.remember_java_names()
    try:
        spark = builder.getOrCreate()
    except PySparkRuntimeError as error:
        raise NotBuiltError(f"Spark does not start; is Java 17 on the path? ({error.getMessage()})") from error
    spark_internals.end_jvm_with_this_process(spark)
    return spark


def _is_local(master: str) -> bool:
    return master.startswith("local")


def configuration(settings: Settings, is_local: bool, archiving: str = "") -> dict[str, str]:
    """Returns Spark's settings but its master, and those that its JVM takes from this process. Raises NotBuiltError."""
    jars = sorted(settings.jars.glob("*.jar"))
    if not jars:
        remedy = "run `mvn -f services/stream-processor/jvm/pom.xml package`, or install a wheel, which has them"
        raise NotBuiltError(f"no jars in {settings.jars}: {remedy}")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    if is_local:
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    own = f"{COMPILE_ALL} {CODE_CACHE} {COLLECTOR}"
    archive = settings.jars / CLASS_ARCHIVE
    sharing = archiving or (f"-XX:SharedArchiveFile={archive}" if archive.exists() else "")
    logging = f"{JVM_LOG} -Dlog4j2.configurationFile={LOGGING.as_uri()}"
    fixed = yaml.safe_load(SPARK_SETTINGS.read_text(encoding="utf-8"))
    return {
        **{name: ",".join(value) if isinstance(value, list) else value for name, value in fixed.items()},
        # All jars, one by one and in one order: an archive of classes fits no other class path. What
        # spark.driver.extraClassPath adds goes before them.
        "spark.driver.defaultExtraClassPath": os.pathsep.join(map(str, [*spark_internals.spark_jars(), *jars])),
        "spark.driver.memory": settings.driver_memory,
        "spark.driver.extraJavaOptions": f"{logging} {own} {sharing} {settings.java_options}",
        **(ALONE if is_local else {**LOST_SOON, "spark.jars": ",".join(map(str, jars))}),
        # Executors elsewhere keep Spark's own logging: this file need not be there.
        "spark.executor.extraJavaOptions": f"{own} {settings.java_options}",
    }


def missing_slots(offered: int, needed: int) -> str | None:
    """Returns, for people, why the executors' task slots are too few to run the queries; None when they suffice."""
    if offered >= needed:
        return None
    return f"the executors give {offered} task slots, the pipelines need {needed}: add workers or cores"


def drain(spark: SparkSession, queries: Sequence[StreamingQuery], timeout_s: float) -> None:
    """Lets the queries end with a checkpoint, within `timeout_s`; after that, stop() ends them without one.

    Records that a query has written since its last checkpoint come again at the next start.
    """
    if not queries or not timeout_s:
        return
    started = time.monotonic()
    try:
        late = spark_internals.end_batches(spark, queries, timeout_s)
    except JVM_ERRORS as error:
        log.warning("not drained", reason=jvm_reason(error))
        return
    seconds = round(time.monotonic() - started, 1)
    if late:
        log.warning("some queries stop without a last checkpoint", queries=late, seconds=seconds)
    else:
        log.info("drained", seconds=seconds)


def stop_queries(queries: Sequence[StreamingQuery]) -> None:
    """Stops the queries side by side; each may take Spark's stopTimeout. One that does not stop is passed over."""
    threads = [Thread(target=_quietly, args=(query.stop,), daemon=True) for query in queries]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def stop(spark: SparkSession, queries: Sequence[StreamingQuery]) -> None:
    """Stops all queries side by side, then Spark; returns after MAX_STOP_S even if they hang.

    Records that no checkpoint holds yet are read and written again at the next start. Spark's JVM ends with this
    process.
    """
    stopper = Thread(target=_stop, args=(spark, queries), name="stop", daemon=True)
    stopper.start()
    stopper.join(MAX_STOP_S)
    if stopper.is_alive():
        log.warning("Spark does not stop; exiting without it")


def _stop(spark: SparkSession, queries: Sequence[StreamingQuery]) -> None:
    started = time.monotonic()
    # Stopping interrupts tasks, and their lines about it would read like a failure.
    _quietly(lambda: spark.sparkContext.setLogLevel("OFF"))
    stop_queries(queries)
    _quietly(partial(spark_internals.close_tables, spark))
    _quietly(spark.stop)
    log.info("stopped", seconds=round(time.monotonic() - started, 1))


def _quietly(action: Callable[[], object]) -> None:
    try:
        action()
    except JVM_ERRORS as error:
        # A query that has failed, or a JVM that is gone, has nothing left to stop; one that is late ends by itself.
        log.debug("not stopped", reason=str(error))
