"""What all reads of a replica share: bounds, what a deletion tells, and older versions."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import TypeGuard

from query_service.errors import BeforeHistoryError, BoundsError, NoHistoryError, NotServedError
from query_service.freshness import Absence, Freshness, Time
from query_service.lookups import Bounds
from query_service.storage.changes import Watcher
from query_service.storage.replica import Replica
from query_service.storage.store_keys import DELETED, FLAGS_AT, UNTIMED, header_of
from query_service.storage.stores_file import StoreDefinition
from statecast.position import Position

_MAX_PAUSE_S = 1.0


def are_met(replica: Replica, bounds: Bounds) -> bool:
    """Whether a result of this replica would be fresh enough now. Raises BoundsError when it never will be."""
    if bounds.at_least is not None:
        if bounds.at_least.epoch != replica.topic.epoch:
            raise BoundsError("bounds.at_least: it is of another incarnation of the topic: drop it and read again")
        if bounds.at_least.offset > replica.progress.applied_offset:
            return False
    return bounds.max_lag_ms is None or replica.progress.lag_ms <= bounds.max_lag_ms


async def wait_until_met(
    replica: Replica, bounds: Bounds | None, deadline: float, monotonic: Callable[[], float]
) -> None:
    """Waits for the replica to become fresh enough. Raises BoundsError at the deadline, saying how far it is."""
    if bounds is None or are_met(replica, bounds):
        return
    with replica.changes.watched_by(Watcher(None)) as watcher:
        while not are_met(replica, bounds):
            if not replica.progress.serving:
                raise NotServedError("the partition is being read anew: try again")
            left_s = deadline - monotonic()
            if left_s <= 0:
                raise BoundsError(_shortfall(replica, bounds))
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
        raise NoHistoryError(
            f"store: `{definition.name}` keeps no history: "
            "add, for example, `history: {versions: 20}` to it in the stores file of all instances"
        )


def version_at(replica: Replica, key: bytes, as_of: Time) -> bytes | None:
    """Returns the stored value that was applied last among those committed by a time; None for an unknown key.

    Versions without a commit time are passed over. Raises BeforeHistoryError when all that is kept is younger, and
    NotServedError when the store has moved away.
    """
    oldest: Time | None = None
    for value in replica.versions(key):
        header = header_of(value)
        if header.flags & UNTIMED:
            continue
        oldest = (header.commit_seconds, header.commit_nanos)
        if oldest <= as_of:
            return value
    if oldest is None:
        return None
    raise BeforeHistoryError(
        f"as_of: the oldest version that is kept is of {_text(oldest)}: ask for that time or a later one"
    )


def _shortfall(replica: Replica, bounds: Bounds) -> str:
    progress = replica.progress
    if bounds.at_least is not None and bounds.at_least.offset > progress.applied_offset:
        return (
            f"bounds.at_least: partition {replica.partition} has been applied through offset "
            f"{progress.applied_offset}, not {bounds.at_least.offset}: wait longer"
        )
    return (
        f"bounds.max_lag_ms: the lag is {progress.lag_ms} ms, above {bounds.max_lag_ms} ms: accept more, or wait longer"
    )


def _text(time: Time) -> str:
    seconds, nanos = time
    fraction = f".{nanos:09}".removesuffix("000").removesuffix("000").removesuffix(".000")
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}{fraction}Z"
