"""What all reads of a replica share: bounds, what a deletion tells, and older versions."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import TypeGuard

from query_service.errors import BeforeHistoryError, BoundsError, NoHistoryError, NotServedError
from query_service.lookups import Bounds
from query_service.storage.progress import Absence, Freshness, Time
from query_service.storage.replica import Replica
from query_service.storage.store_keys import DELETED, FLAGS_AT, UNTIMED, header_of
from query_service.storage.stores_file import StoreDefinition
from statecast.position import Position

_MAX_PAUSE_S = 1.0


def shortfall(replica: Replica, bounds: Bounds) -> str | None:
    """Returns what the replica lacks to be fresh enough now, or None. Raises BoundsError when it never will be."""
    wanted, applied_offset = bounds.at_least, replica.progress.applied_offset
    if wanted is not None and wanted.epoch != replica.topic.epoch:
        raise BoundsError("bounds.at_least: it is of another incarnation of the topic: drop it and read again")
    if wanted is not None and wanted.offset > applied_offset:
        through = f"partition {replica.partition} has been applied through offset {applied_offset}"
        return f"bounds.at_least: {through}, not {wanted.offset}: wait longer"
    if bounds.max_lag_ms is not None and (lag_ms := replica.progress.lag_ms) > bounds.max_lag_ms:
        return f"bounds.max_lag_ms: the lag is {lag_ms} ms, above {bounds.max_lag_ms} ms: accept more, or wait longer"
    return None


async def wait_until_met(
    replica: Replica, bounds: Bounds | None, deadline: float, monotonic: Callable[[], float]
) -> None:
    """Waits for the replica to become fresh enough. Raises BoundsError at the deadline, saying how far it is."""
    if bounds is None or shortfall(replica, bounds) is None:
        return
    with replica.changes.watch(None) as watcher:
        while (missing := shortfall(replica, bounds)) is not None:
            if not replica.progress.serving:
                raise NotServedError("the partition is being read anew: try again")
            left_s = deadline - monotonic()
            if left_s <= 0:
                raise BoundsError(missing)
            await watcher.wait(min(left_s, _MAX_PAUSE_S))


def is_value(value: bytes | None) -> TypeGuard[bytes]:
    """Whether a stored value is a row, and neither nothing nor a remembered deletion."""
    return value is not None and not value[FLAGS_AT] & DELETED


def absence_of(value: bytes | None, freshness: Freshness, purged_offset: int | None = None) -> Absence:
    """Returns what a remembered deletion tells, or, for None, that nothing is known as of the last applied record.

    `purged_offset` is that of the store, read after the value.
    """
    if value is None:
        return Absence(Position(freshness.epoch, freshness.applied_offset), purged_offset=purged_offset)
    header = header_of(value)
    commit_time = None if header.flags & UNTIMED else (header.commit_seconds, header.commit_nanos)
    return Absence(Position(freshness.epoch, header.offset), deleted=True, commit_time=commit_time)


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
    text = f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}{fraction}Z"
    raise BeforeHistoryError(f"as_of: the oldest version that is kept is of {text}: ask for that time or a later one")
