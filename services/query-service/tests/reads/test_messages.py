"""Positions, freshness and absence become messages of the contract."""

from query_service.reads import messages
from query_service.storage.progress import Freshness
from query_service.storage.store_keys import DELETED, HEADER, UNTIMED
from statecast.query.v1 import query_pb2
from statecast.state.v1 import state_pb2

FRESHNESS = Freshness(2, 3, 4, 77, 99, "query-1")


def deletion(flags: int = 0) -> bytes:
    """Returns a remembered deletion at offset 5."""
    return HEADER.pack(1, 2, 5, 1_700_000_000, 0, DELETED | flags)


def test_a_remembered_deletion_tells_its_position_and_time() -> None:
    absence = messages.absence_of(deletion(), FRESHNESS, purged_offset=3)

    assert absence.deleted
    assert absence.position == state_pb2.Position(epoch=77, offset=5)
    assert absence.commit_time.seconds == 1_700_000_000
    assert not absence.HasField("unchanged_since")


def test_a_deletion_whose_time_is_not_known_has_none() -> None:
    assert not messages.absence_of(deletion(UNTIMED), FRESHNESS).HasField("commit_time")


def test_nothing_known_is_absent_as_of_the_last_record() -> None:
    absence = messages.absence_of(None, FRESHNESS)

    assert absence == query_pb2.Absence(position=state_pb2.Position(epoch=77, offset=99))
    assert not absence.HasField("unchanged_since")


def test_nothing_known_has_not_changed_since_the_last_deletion_that_was_forgotten() -> None:
    absence = messages.absence_of(None, FRESHNESS, purged_offset=3)

    assert absence.unchanged_since == state_pb2.Position(epoch=77, offset=3)


def test_a_freshness_survives_the_way_to_a_peer() -> None:
    assert messages.freshness_of(messages.freshness_message(FRESHNESS)) == FRESHNESS
