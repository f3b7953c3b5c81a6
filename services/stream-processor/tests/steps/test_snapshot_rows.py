"""Rows that snapshots read beside the changes of transactions that were open then, in micro-batches."""

from collections.abc import Sequence

import pytest

from testkit.stream_processor.micro_batches import BatchesOf, PipelineOf
from testkit.stream_processor.truncated_positions import (
    POSITIONS,
    Event,
    created,
    encoded,
    event,
    held,
    of_rows,
    position,
    read_by_snapshot,
    truncated,
)

pytestmark = pytest.mark.timeout(600)


NEW = [position(f"p{number}", "b", 5) for number in range(6)]


def histories() -> list[Sequence[Event]]:
    """Changes of the rows of NEW, each of which ends as it stands there.

    A snapshot reads the old row when the log ended at 48. The change to the new one is of a transaction that ended
    after that, with a place in the log from before.
    """
    rows = [str(each["position_id"]) for each in NEW]
    read = [read_by_snapshot(48, row) for row in rows]
    open_then = [event("u", 40, position(row), after, hours=1) for row, after in zip(rows, NEW, strict=True)]
    old = [created(8, row) for row in rows]
    new_was_read = [event("r", 48, after=each) for each in NEW]
    return [
        [old[0], read[0], open_then[0]],
        # The row is new.
        [read[1], open_then[1]],
        # A change comes again behind it.
        [old[2], read[2], open_then[2], old[2], open_then[2]],
        # The snapshot has read the new row; the change comes again behind that.
        [old[3], open_then[3], new_was_read[3]],
        [old[4], open_then[4], new_was_read[4], old[4], open_then[4]],
        # More snapshots.
        [old[5], read[5], event("r", 56, after=position(rows[5])), open_then[5], event("r", 64, after=NEW[5])],
    ]


def test_rows_end_as_the_transaction_left_them(shipped: PipelineOf, batches_of: BatchesOf) -> None:
    pipeline = shipped("us-share-holders", source=POSITIONS)
    played = batches_of(pipeline)
    played.add(encoded(each for history in histories() for each in history))
    played.run()

    assert held(played.written, "aggregate") == of_rows(NEW, "aggregate")
    assert played.outcomes["superseded_newer"] == 0


BY_KEY = {"source": POSITIONS, "group_by": "position_id", "keep": "latest", "sink": {"topic": "by-key"}}
CHANGED, OPEN, END_OF_LOG = 800, 808, 1_600
READS = range(END_OF_LOG, END_OF_LOG + 900, 100)
"""The places of more snapshots than there are numbers between two changes."""


@pytest.mark.parametrize(
    ("late", "left"),
    [
        (
            [event("u", OPEN, after=position("updated", "b", 2)), event("d", OPEN, before=position("deleted"))],
            [position("updated", "b", 2)],
        ),
        pytest.param([truncated(OPEN)], [], marks=pytest.mark.long),
    ],
    ids=["changed", "truncated"],
)
def test_a_change_of_an_open_transaction_wins_however_often_its_row_was_read(
    shipped: PipelineOf, batches_of: BatchesOf, late: list[Event], left: list[dict[str, object]]
) -> None:
    rows = ("updated", "deleted")
    batches = batches_of(shipped("us-share-holders", **BY_KEY))
    batches.add(encoded(created(CHANGED, row) for row in rows))
    for end_of_log in READS:
        batches.add(encoded(read_by_snapshot(end_of_log, row) for row in rows))
    batches.add(encoded(late))
    batches.run()

    assert held(batches.written, "latest") == of_rows(left, "latest")
