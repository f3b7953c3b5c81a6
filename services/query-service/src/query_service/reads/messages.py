"""Fills the messages of the contract that stand beside rows: positions, freshness and absence."""

from query_service.storage.progress import Freshness
from query_service.storage.store_keys import UNTIMED, header_of
from statecast.position import Position
from statecast.query.v1 import query_pb2
from statecast.state.v1 import state_pb2


def fill_position(message: state_pb2.Position, position: Position) -> None:
    """Sets the position, also one of zeros."""
    message.SetInParent()
    message.epoch, message.offset = position


def fill_freshness(message: query_pb2.Freshness, freshness: Freshness) -> None:
    message.partition, message.lag_records, message.lag_ms, epoch, applied_offset, message.answered_by = freshness
    position = message.current_through
    position.epoch, position.offset = epoch, applied_offset


def freshness_message(freshness: Freshness) -> query_pb2.Freshness:
    message = query_pb2.Freshness()
    fill_freshness(message, freshness)
    return message


def freshness_of(message: query_pb2.Freshness) -> Freshness:
    position = message.current_through
    lag = message.lag_records, message.lag_ms
    return Freshness(message.partition, *lag, position.epoch, position.offset, message.answered_by)


def absence_of(value: bytes | None, freshness: Freshness, purged_offset: int | None = None) -> query_pb2.Absence:
    """Returns the absence of a remembered deletion; for None, that of a key unknown as of the last applied record.

    `purged_offset` is that of the store, read after the value: deletions up to it may have been forgotten.
    """
    absence, epoch = query_pb2.Absence(), freshness.epoch
    if value is None:
        fill_position(absence.position, Position(epoch, freshness.applied_offset))
        if purged_offset is not None:
            fill_position(absence.unchanged_since, Position(epoch, purged_offset))
        return absence
    header = header_of(value)
    fill_position(absence.position, Position(epoch, header.offset))
    absence.deleted = True
    if not header.flags & UNTIMED:
        absence.commit_time.seconds, absence.commit_time.nanos = header.commit_seconds, header.commit_nanos
    return absence
