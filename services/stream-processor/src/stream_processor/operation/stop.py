"""Stops the queries and Spark, within a time."""

import time
from collections.abc import Callable, Sequence
from functools import partial
from threading import Thread
from typing import Any, cast

import structlog
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from stream_processor.operation.last_batch import LastBatch

log = structlog.get_logger()

LONGEST_S = 8.0


def drain(spark: SparkSession, queries: Sequence[StreamingQuery], within_s: float) -> None:
    """Lets the queries end with a checkpoint, for so long at most; after that, stop() ends them without.

    What a query has written since a checkpoint that it did not make comes again at the next start.
    """
    if not queries or not within_s:
        return
    started = time.monotonic()
    try:
        late = LastBatch(spark).end(queries, within_s)
    except (Py4JError, PySparkException, OSError) as error:
        log.warning("not drained", reason=str(error).partition("\n")[0])
        return
    seconds = round(time.monotonic() - started, 1)
    if late:
        log.warning("some queries stop without a last checkpoint", queries=late, seconds=seconds)
    else:
        log.info("drained", seconds=seconds)


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
    _quietly(partial(_close_tables, spark))
    _quietly(spark.stop)
    log.info("stopped", seconds=round(time.monotonic() - started, 1))


def _close_tables(spark: SparkSession) -> None:
    cast(Any, spark._jvm).io.statecast.spark.GlobalTables.closeAll()


def _quietly(action: Callable[[], object]) -> None:
    try:
        action()
    except (Py4JError, PySparkException, OSError) as error:
        # A query that has failed, or a JVM that is gone, has nothing left to stop.
        log.debug("not stopped", reason=str(error))
