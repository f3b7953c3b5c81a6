"""What every result says beside its value: the position, and how old it may be. Plain types that all layers share."""

from typing import NamedTuple

from statecast.position import Position

Time = tuple[int, int]
"""Seconds and nanoseconds since the beginning of 1970, UTC."""


class Freshness(NamedTuple):
    """How old a result may be that was read after this was taken, and which instance gave it."""

    partition: int
    lag_records: int
    lag_ms: int
    epoch: int
    applied_offset: int
    answered_by: str
    forwarded: bool = False


class Absence(NamedTuple):
    """A key without a value: as of the record that deleted it, or, when none is known, the last that was applied.

    `purged_offset` is the offset up to which deletions may have been purged, for a key of which nothing is known.
    """

    position: Position
    deleted: bool = False
    commit_time: Time | None = None
    purged_offset: int | None = None
