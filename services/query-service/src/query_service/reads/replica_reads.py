"""Rules that all reads of a replica share: bounds, which values are rows, and older versions."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import TypeGuard

from query_service.errors import BeforeHistoryError, BoundsError, NoHistoryError, NotServedError
from query_service.storage.progress import Time
from query_service.storage.replica import Replica
from query_service.storage.store_keys import DELETED, FLAGS_AT, UNTIMED, header_of
from query_service.storage.stores_file import StoreDefinition
from statecast.query.v1 import query_pb2

_MAX_PAUSE_S = 1.0


def shortfall(replica: Replica, bounds: query_pb2.Bounds) -> str | None:
    """Returns the reason why the replica is not fresh enough now, or None. Raises BoundsError when it never will be."""
    applied_offset = replica.progress.applied_offset
    wanted = bounds.at_least if bounds.HasField("at_least") else None
    if wanted is not None and wanted.epoch != replica.topic.epoch:
        raise BoundsError("bounds.at_least: it belongs to another incarnation of the topic: drop it and read again")
    if wanted is not None and wanted.offset > applied_offset:
        through = f"partition {replica.partition} has been applied through offset {applied_offset}"
        return f"bounds.at_least: {through}, not {wanted.offset}: wait longer"
    if bounds.HasField("max_lag_ms") and (lag_ms := replica.progress.lag_ms) > bounds.max_lag_ms:
        return f"bounds.max_lag_ms: the lag is {lag_ms} ms, above {bounds.max_lag_ms} ms: accept more, or wait longer"
    return None


async def wait_until_met(
    replica: Replica, bounds: query_pb2.Bounds, deadline: float, monotonic: Callable[[], float]
) -> None:
    """Waits for the replica to become fresh enough. Raises BoundsError at the deadline, saying how far it is."""
    if shortfall(replica, bounds) is None:
        return
    with replica.changes.watch(None) as watcher:
        while (missing := shortfall(replica, bounds)) is not None:
            if not replica.progress.serving:
                raise NotServedError("the partition is being rebuilt: try again")
            left_s = deadline - monotonic()
            if left_s <= 0:
                raise BoundsError(missing)
            await watcher.wait(min(left_s, _MAX_PAUSE_S))


def is_value(value: bytes | None) -> TypeGuard[bytes]:
    """Returns whether a stored value is a row, and neither nothing nor a remembered deletion."""
    return value is not None and not value[FLAGS_AT] & DELETED


def check_history(definition: StoreDefinition) -> None:
    """Raises NoHistoryError when the store keeps no older versions."""
    if definition.history is None:
        remedy = "add, for example, `history: {versions: 20}` to it in the stores file of all instances"
        raise NoHistoryError(f"store: `{definition.name}` keeps no history: {remedy}")


def version_at(replica: Replica, key: bytes, as_of: Time) -> bytes | None:
    """Returns the stored value that was applied last among those committed by a time; None for an unknown key.

    Versions without a commit time are passed over. Raises BeforeHistoryError when all that is kept is younger.
    """
    oldest: Time | None = None
    for value in replica.versions(key):
        header = header_of(value)
        if not header.flags & UNTIMED:
            oldest = (header.commit_seconds, header.commit_nanos)
            if oldest <= as_of:
                return value
    if oldest is None:
        return None
    seconds, nanos = oldest
    fraction = f".{nanos:09}".removesuffix("000").removesuffix("000").removesuffix(".000")
    text = f"{datetime.fromtimestamp(seconds, UTC).replace(tzinfo=None).isoformat()}{fraction}Z"
    raise BeforeHistoryError(f"as_of: the oldest kept version is of {text}: ask for that time or a later one")
