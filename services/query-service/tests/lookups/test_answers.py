"""Stored values in the messages of the contract."""

from query_service.lookups.answers import fill_absence, fill_state, is_value, state_key
from query_service.storage.store_keys import DELETED, HEADER, UNTIMED
from statecast.query.v1 import query_pb2
from statecast.state.v1 import state_pb2

KEY = state_pb2.StateKey(group="g", sort="1", member="m")
NOWHERE = state_pb2.Position(epoch=77, offset=99)


def test_a_row_becomes_a_state() -> None:
    state = query_pb2.State()
    fill_state(state, KEY, 77, HEADER.pack(1, 2, 5, 1_700_000_000, 250, 0) + b"row")

    assert state.key == KEY
    assert (state.position.epoch, state.position.offset) == (77, 5)
    assert (state.commit_time.seconds, state.commit_time.nanos) == (1_700_000_000, 250)
    assert state.payload == b"row"


def test_a_row_without_a_commit_time_leaves_it_out() -> None:
    state = query_pb2.State()
    fill_state(state, KEY, 77, HEADER.pack(1, 2, 5, 0, 0, UNTIMED))

    assert not state.HasField("commit_time")


def test_a_remembered_deletion_tells_its_position_and_time() -> None:
    absence = query_pb2.Absence()
    fill_absence(absence, 77, HEADER.pack(1, 2, 5, 1_700_000_000, 0, DELETED), NOWHERE)

    assert absence.deleted
    assert absence.position.offset == 5
    assert absence.commit_time.seconds == 1_700_000_000


def test_nothing_known_is_absent_as_of_the_last_record() -> None:
    absence = query_pb2.Absence()
    fill_absence(absence, 77, None, NOWHERE)

    assert not absence.deleted
    assert absence.position == NOWHERE
    assert not absence.HasField("commit_time")


def test_nothing_known_has_not_changed_since_the_last_deletion_that_was_forgotten() -> None:
    absence, deletion = query_pb2.Absence(), query_pb2.Absence()
    fill_absence(absence, 77, None, NOWHERE, purged_through=3)
    fill_absence(deletion, 77, HEADER.pack(1, 2, 5, 1_700_000_000, 0, DELETED), NOWHERE, purged_through=3)

    assert absence.unchanged_since == state_pb2.Position(epoch=77, offset=3)
    assert not deletion.HasField("unchanged_since")


def test_only_a_row_is_a_value() -> None:
    assert is_value(HEADER.pack(1, 1, 1, 0, 0, 0))
    assert not is_value(HEADER.pack(1, 1, 1, 0, 0, DELETED))
    assert not is_value(None)


def test_a_key_is_split_into_its_parts() -> None:
    assert state_key(b"g\x001\x00m") == KEY
    assert state_key(b"g") == state_pb2.StateKey(group="g")
