"""Lets running queries end after the batch that they are in, with its checkpoint.

Spark itself can only interrupt a query, and what was written since its last checkpoint then comes again at the next
start. A real-time batch lasts as long as the time between checkpoints, so its time is made to run out: the readers of a
task look at one clock of Spark's before each record. Both that clock and a query's state are inner parts of Spark 4.3,
open to the JVM that they live in. On a cluster the readers are in other JVMs, and batches end at their usual time.
"""

import time
from collections.abc import Callable, Sequence
from typing import Any, cast

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

LOOK_S = 0.05
BEYOND_MS = 1 << 52
"""A time after the end of every batch; some room is left to add to it."""
STEP_MS = 1 << 42
"""Longer than every batch, should one have begun in that time."""


class LastBatch:
    """Ends the queries of one Spark session. Create it when they shall end."""

    def __init__(self, spark: SparkSession) -> None:
        runtime = cast(Any, spark._jvm).org.apache.spark.sql.execution
        self._terminated = getattr(getattr(runtime.streaming.runtime, "TERMINATED$"), "MODULE$")
        self._clock = cast(Any, spark._jvm).org.apache.spark.util.ManualClock(BEYOND_MS)
        self._reader_clock = runtime.datasources.v2.LowLatencyClock

    def end(
        self,
        queries: Sequence[StreamingQuery],
        within_s: float,
        clock: Callable[[], float] = time.monotonic,
        pause: Callable[[float], None] = time.sleep,
    ) -> list[str]:
        """Waits until all queries have committed and ended; the names of those that did not in that time.

        A real-time task ends at the next record of its partition, or with its batch: one whose partition is idle may
        take the whole time. A query that fails meanwhile has ended too.
        """
        deadline = clock() + within_s
        executions = {str(query.name): _execution(query) for query in queries}
        for execution in executions.values():
            execution.state().set(self._terminated)
        self._reader_clock.setClock(self._clock)
        while running := [name for name, each in executions.items() if each.queryExecutionThread().isAlive()]:
            if clock() >= deadline:
                return running
            self._clock.advance(STEP_MS)
            pause(LOOK_S)
        return []


def _execution(query: StreamingQuery) -> Any:
    return cast(Any, query)._jsq.streamingQuery()
