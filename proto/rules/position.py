"""Positions, which say how far a reader of a key has read, and the order between them.

Within an epoch a higher offset is newer. Positions of different epochs cannot be compared.
"""

from typing import NamedTuple, Protocol


class HasPosition(Protocol):
    """A Position, or the Protobuf message of that name."""

    @property
    def epoch(self) -> int: ...
    @property
    def offset(self) -> int: ...


class Position(NamedTuple):
    """The record that was last applied to a key: its offset, in the incarnation of the topic that `epoch` names."""

    epoch: int
    offset: int

    def __str__(self) -> str:
        return position_text(self)


def position_text(position: HasPosition) -> str:
    """Returns a position for people, for example `7/42`."""
    return f"{position.epoch}/{position.offset}"


def covers(reader: HasPosition | None, position: HasPosition) -> bool:
    """Returns whether a reader at `reader` already has the state at `position`.

    False where the reader has read nothing, or has read another epoch.
    """
    return reader is not None and reader.epoch == position.epoch and reader.offset >= position.offset


def topic_epoch(most_significant_bits: int) -> int:
    """Returns the epoch of positions in a topic: the upper 63 bits of Kafka's topic id, given as a signed long."""
    return (most_significant_bits & 0xFFFFFFFFFFFFFFFF) >> 1
