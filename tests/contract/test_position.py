"""Positions are ordered within an epoch, and not beyond it."""

import pytest

from statecast.position import Position, covers, position_text, topic_epoch
from statecast.state.v1.state_pb2 import Position as PositionMessage


@pytest.mark.parametrize(
    ("reader", "expected"),
    [
        (Position(7, 4), False),
        (Position(7, 5), True),
        (Position(7, 6), True),
        (Position(6, 9), False),
        (Position(8, 9), False),
        (None, False),
    ],
)
def test_a_reader_has_what_is_not_above_its_offset_in_the_same_epoch(reader: Position | None, expected: bool) -> None:
    assert covers(reader, Position(7, 5)) == expected


def test_messages_are_compared_as_positions_are() -> None:
    assert covers(PositionMessage(epoch=7, offset=5), Position(7, 5))
    assert not covers(Position(7, 4), PositionMessage(epoch=7, offset=5))


def test_a_position_is_written_for_people() -> None:
    assert str(Position(7, 42)) == position_text(PositionMessage(epoch=7, offset=42)) == "7/42"


@pytest.mark.parametrize(("most_significant_bits", "epoch"), [(0, 0), (3, 1), (-1, 2**63 - 1), (-(2**63), 2**62)])
def test_the_epoch_is_the_upper_63_bits_of_the_topics_id(most_significant_bits: int, epoch: int) -> None:
    assert topic_epoch(most_significant_bits) == epoch
