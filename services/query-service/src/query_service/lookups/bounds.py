"""Holds an answer back until it is as fresh as the caller demands."""

from collections.abc import Callable

from query_service.errors import BoundsError, NotServedError
from query_service.storage.changes import Watcher
from query_service.storage.partition_host import PartitionHost
from statecast.query.v1 import query_pb2

_LONGEST_NAP_S = 1.0


def met(host: PartitionHost, bounds: query_pb2.Bounds) -> bool:
    """Whether an answer of this replica would be fresh enough now. Raises BoundsError when it never will be."""
    if bounds.HasField("at_least"):
        if bounds.at_least.epoch != host.place.epoch:
            raise BoundsError("bounds.at_least: it is of another incarnation of the topic: drop it and read again")
        if bounds.at_least.offset > host.progress.current_through:
            return False
    return not bounds.HasField("max_lag_ms") or host.progress.lag_ms <= bounds.max_lag_ms


async def wait_until_met(
    host: PartitionHost, bounds: query_pb2.Bounds, deadline: float, monotonic: Callable[[], float]
) -> None:
    """Waits for the replica to become fresh enough. Raises BoundsError at the deadline, saying how far it is."""
    if met(host, bounds):
        return
    with host.changes.watched_by(Watcher(None)) as watcher:
        while not met(host, bounds):
            if not host.progress.serving:
                raise NotServedError("the partition is being read anew: try again")
            left = deadline - monotonic()
            if left <= 0:
                raise BoundsError(_shortfall(host, bounds))
            await watcher.wait(min(left, _LONGEST_NAP_S))


def _shortfall(host: PartitionHost, bounds: query_pb2.Bounds) -> str:
    progress = host.progress
    if bounds.HasField("at_least") and bounds.at_least.offset > progress.current_through:
        return (
            f"bounds.at_least: partition {host.place.partition} has been applied through offset "
            f"{progress.current_through}, not {bounds.at_least.offset}: wait longer"
        )
    return (
        f"bounds.max_lag_ms: the lag is {progress.lag_ms} ms, above {bounds.max_lag_ms} ms: accept more, or wait longer"
    )
