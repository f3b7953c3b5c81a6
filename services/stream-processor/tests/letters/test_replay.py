"""Which dead letters go back, and as what."""

from pathlib import Path

import pytest

from stream_processor.letters.letter_reader import Letter
from stream_processor.letters.replay import Counts, ReturnedRecord, replay
from stream_processor.letters.replay_note import ReplayNote
from stream_processor.operation.local_checkpoints import LocalCheckpoints
from stream_processor.steps.letter_headers import OFFSET, PARTITION, REASON, REPLAYED, TOPIC, TRUNCATED


def letter(at: int, origin: int, reason: str = "wrong", topic: str = "orders", **more: bytes) -> Letter:
    own = {REASON: reason, TOPIC: topic, PARTITION: "3", OFFSET: str(origin)}
    headers = [(key.replace("_", "-"), value) for key, value in more.items()]
    return Letter(0, at, b"key", b"value", tuple(headers + [(key, value.encode()) for key, value in own.items()]))


@pytest.fixture
def note(tmp_path: Path) -> ReplayNote:
    return ReplayNote(LocalCheckpoints(tmp_path), "note.json", "id")


def run(letters: list[Letter], note: ReplayNote, reason: str = "") -> tuple[Counts, list[ReturnedRecord]]:
    sent: list[ReturnedRecord] = []
    return replay(letters, "orders", "orders.dead-letter", note, reason, sent.append), sent


def test_a_letter_goes_back_as_the_record_that_it_was(note: ReplayNote) -> None:
    counts, [sent] = run([letter(7, origin=5, trace=b"1")], note)

    assert counts == Counts(replayed=1)
    assert sent == ReturnedRecord(
        "orders", 3, b"key", b"value", [("trace", b"1"), (REPLAYED, b"orders.dead-letter/0/7")]
    )


def test_a_second_replay_sends_nothing(note: ReplayNote) -> None:
    run([letter(7, origin=5)], note)

    assert run([letter(7, origin=5)], note) == (Counts(), [])


def test_a_record_that_was_set_aside_twice_goes_back_once(note: ReplayNote) -> None:
    counts, sent = run([letter(0, origin=5), letter(1, origin=5), letter(2, origin=6)], note)

    assert counts == Counts(replayed=2, repeated=1)
    assert len(sent) == 2


def test_other_reasons_are_left_for_another_replay(note: ReplayNote) -> None:
    letters = [letter(0, origin=5, reason="customer_id is empty"), letter(1, origin=6, reason="not a change")]

    assert run(letters, note, "customer_id")[0] == Counts(replayed=1, left=1)
    assert run(letters, note, "")[0] == Counts(replayed=1)


@pytest.mark.parametrize(
    "beyond", [letter(0, 5, topic="other"), letter(0, 5, statecast_truncated=b"9"), Letter(0, 0, None, None, ())]
)
def test_what_cannot_be_put_back_is_passed_over(note: ReplayNote, beyond: Letter) -> None:
    counts, sent = run([beyond, letter(1, origin=6)], note)

    assert counts == Counts(replayed=1, unusable=1)
    assert len(sent) == 1


def test_a_record_that_fails_again_names_only_its_last_replay(note: ReplayNote) -> None:
    again = letter(9, origin=8, statecast_replayed=b"orders.dead-letter/0/7")

    _, [sent] = run([again], note)

    assert sent.headers == [(REPLAYED, b"orders.dead-letter/0/9")]


def test_the_letters_headers_are_the_last_ones() -> None:
    forged = Letter(0, 0, None, None, ((OFFSET, b"1"), (TOPIC, b"orders"), (PARTITION, b"0"), (OFFSET, b"2")))

    assert forged.origin == ("orders", 0, 2)
    assert letter(0, 0, statecast_truncated=b"1").truncated
    assert TRUNCATED == "statecast-truncated"
