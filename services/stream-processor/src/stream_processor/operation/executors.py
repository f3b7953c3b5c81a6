"""Waits until a cluster's executors give the task slots that the queries need."""

import time
from collections.abc import Callable
from typing import Any, Protocol, cast

from pyspark.sql import SparkSession

from stream_processor.operation.waiting import wait_while_missing

POLL_S = 0.25


class Slots(Protocol):
    """Tells how many task slots there are."""

    def offered(self) -> int:
        """The slots of all executors that have come, taken or free."""


class SparkSlots:
    """Asks Spark's status store, to which the executors of a local master and of all clusters look the same."""

    def __init__(self, spark: SparkSession) -> None:
        self._store = cast(Any, spark.sparkContext._jsc).sc().statusStore()

    def offered(self) -> int:
        """See Slots."""
        alive = self._store.executorList(True)
        return sum(int(alive.apply(number).maxTasks()) for number in range(alive.size()))


def wait_for_slots(
    slots: Slots,
    needed: int,
    stopping: Callable[[float], bool],
    report: Callable[[str], None],
    clock: Callable[[], float] = time.monotonic,
) -> bool:
    """Blocks until there are enough: see wait_while_missing.

    A real-time query that does not find all its slots fails at once, and executors come seconds after the driver.
    """

    def missing() -> str | None:
        offered = slots.offered()
        if offered >= needed:
            return None
        return f"the executors give {offered} task slots, the pipelines need {needed}: add workers or cores"

    return wait_while_missing(missing, stopping, report, POLL_S, clock)
