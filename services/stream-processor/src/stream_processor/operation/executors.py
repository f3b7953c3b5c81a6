"""Waits until a cluster's executors give the task slots that the queries need."""

import time
from collections.abc import Callable
from typing import Any, Protocol, cast

import structlog
from pyspark.sql import SparkSession

log = structlog.get_logger()

POLL_S = 0.25
SAY_AGAIN_S = 10.0


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
    """Blocks until there are enough (True), or until `stopping(seconds)`, which waits so long, says to give up (False).

    A real-time query that does not find all its slots fails at once, and executors come seconds after the driver. How
    many are missing goes to `report`, and to the log when it changes and now and then.
    """
    said, said_at = "", clock()
    while (offered := slots.offered()) < needed:
        reason = f"the executors give {offered} task slots, the pipelines need {needed}: add workers or cores"
        report(reason)
        if reason != said or clock() - said_at > SAY_AGAIN_S:
            log.warning("waiting", reason=reason)
            said, said_at = reason, clock()
        if stopping(POLL_S):
            return False
    return True
