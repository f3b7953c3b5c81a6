"""Which dead letters are done."""

from pathlib import Path

from stream_processor.letters.replay_note import ReplayNote
from stream_processor.operation.local_checkpoints import LocalCheckpoints


def test_what_was_done_is_done_after_a_restart(tmp_path: Path) -> None:
    note = ReplayNote(LocalCheckpoints(tmp_path), "note.json", "topic-1")
    note.done(0, 0)
    note.leave(0, 1)
    note.done(0, 2)
    note.save()

    again = ReplayNote(LocalCheckpoints(tmp_path), "note.json", "topic-1")

    assert [again.is_done(0, offset) for offset in range(4)] == [True, False, True, False]
    assert again.starts() == {0: 1}
    assert not again.is_done(1, 0)


def test_what_was_left_can_be_done_later(tmp_path: Path) -> None:
    note = ReplayNote(LocalCheckpoints(tmp_path), "note.json", "topic-1")
    note.leave(0, 0)
    note.done(0, 1)
    note.done(0, 0)
    note.save()

    assert ReplayNote(LocalCheckpoints(tmp_path), "note.json", "topic-1").starts() == {0: 2}


def test_what_is_not_saved_is_not_done(tmp_path: Path) -> None:
    ReplayNote(LocalCheckpoints(tmp_path), "note.json", "topic-1").done(0, 0)

    assert not ReplayNote(LocalCheckpoints(tmp_path), "note.json", "topic-1").is_done(0, 0)


def test_a_topic_that_was_made_anew_begins_anew(tmp_path: Path) -> None:
    note = ReplayNote(LocalCheckpoints(tmp_path), "note.json", "topic-1")
    note.done(0, 5)
    note.save()

    assert ReplayNote(LocalCheckpoints(tmp_path), "note.json", "topic-2").starts() == {}
