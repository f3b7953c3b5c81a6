"""Puts stored values into the messages of the contract."""

from typing import TypeGuard

from query_service.errors import AbsentError
from query_service.storage.store_keys import DELETED, HEADER, HEADER_SIZE, UNTIMED, key_parts
from statecast.query.v1 import query_pb2
from statecast.state.v1 import state_pb2

_unpack = HEADER.unpack_from


def fill_state(state: query_pb2.State, key: state_pb2.StateKey, epoch: int, value: bytes) -> None:
    """Fills an empty State from a stored value that is not a deletion."""
    _, _, offset, seconds, nanos, flags = _unpack(value)
    state.key.CopyFrom(key)
    position = state.position
    position.epoch = epoch
    position.offset = offset
    if not flags & UNTIMED:
        time = state.commit_time
        time.seconds = seconds
        time.nanos = nanos
    state.payload = value[HEADER_SIZE:]


def fill_absence(
    absence: query_pb2.Absence,
    epoch: int,
    value: bytes | None,
    current_through: state_pb2.Position,
    purged_through: int | None = None,
) -> None:
    """Fills an empty Absence from a remembered deletion, or from nothing known as of `current_through`.

    `purged_through` is the offset through which deletions may have been forgotten, read after the value.
    """
    if value is None:
        absence.position.CopyFrom(current_through)
        if purged_through is not None:
            absence.unchanged_since.epoch = epoch
            absence.unchanged_since.offset = purged_through
        return
    _, _, offset, seconds, nanos, flags = _unpack(value)
    absence.deleted = True
    absence.position.epoch = epoch
    absence.position.offset = offset
    if not flags & UNTIMED:
        absence.commit_time.seconds = seconds
        absence.commit_time.nanos = nanos


def absent(
    store: str, key: state_pb2.StateKey, epoch: int, value: bytes | None, freshness: query_pb2.Freshness
) -> AbsentError:
    """Returns the error of a key without a value, from what `fill_absence` takes."""
    absence = query_pb2.Absence()
    fill_absence(absence, epoch, value, freshness.current_through)
    return AbsentError(f"key: `{key.group}` has no value in `{store}`", absence, freshness)


def fill_version(version: query_pb2.Version, epoch: int, value: bytes) -> None:
    """Fills an empty Version from a stored value."""
    _, _, offset, seconds, nanos, flags = _unpack(value)
    version.position.epoch = epoch
    version.position.offset = offset
    if not flags & UNTIMED:
        version.commit_time.seconds = seconds
        version.commit_time.nanos = nanos
    version.deleted = bool(flags & DELETED)
    version.payload = value[HEADER_SIZE:]


def is_value(value: bytes | None) -> TypeGuard[bytes]:
    """Whether a stored value is a row, and neither nothing nor a remembered deletion."""
    return value is not None and not value[HEADER_SIZE - 1] & DELETED


def state_key(key: bytes) -> state_pb2.StateKey:
    """Returns the key of a row as the contract has it."""
    group, sort, member = key_parts(key)
    return state_pb2.StateKey(group=group, sort=sort, member=member)
