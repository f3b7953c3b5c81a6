"""Stops the queries and Spark, within a time."""

import time
from collections.abc import Callable, Sequence
from threading import Thread

import structlog
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

log = structlog.get_logger()

LONGEST_S = 8.0


def stop(spark: SparkSession, queries: Sequence[StreamingQuery]) -> None:
    """Stops all queries side by side, then Spark; returns after LONGEST_S even if they hang.

    What no checkpoint holds yet is read and written again at the next start. Spark's JVM ends with this process.
    """
    stopper = Thread(target=_stop, args=(spark, queries), name="stop", daemon=True)
    stopper.start()
    stopper.join(LONGEST_S)
    if stopper.is_alive():
        log.warning("Spark does not stop; going without it")


def _stop(spark: SparkSession, queries: Sequence[StreamingQuery]) -> None:
    started = time.monotonic()
    # Stopping interrupts tasks, and what they say of it would read like a failure.
    _quietly(lambda: spark.sparkContext.setLogLevel("OFF"))
    threads = [Thread(target=_quietly, args=(query.stop,), daemon=True) for query in queries]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    _quietly(spark.stop)
    log.info("stopped", seconds=round(time.monotonic() - started, 1))


def _quietly(action: Callable[[], object]) -> None:
    try:
        action()
    except (Py4JError, PySparkException, OSError) as error:
        # A query that has failed, or a JVM that is gone, has nothing left to stop.
        log.debug("not stopped", reason=str(error))
