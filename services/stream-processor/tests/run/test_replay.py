"""Dead letters that are replayed, and which of them count as done."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import pytest

from stream_processor.errors import ConfigurationError
from stream_processor.run import replay as replay_module
from stream_processor.run.checkpoints import Checkpoints, LocalFiles
from stream_processor.run.letters import DeadLetter
from stream_processor.run.plan import TopicState
from stream_processor.run.replay import ReplayedRecord, ReplayNote, replay, replay_all
from stream_processor.settings import Settings
from testkit.stream_processor.micro_batches import PipelineOf

REPLAYED = "statecast-replayed"


def letter(at: int, origin: int, reason: str = "wrong", topic: str = "orders", **more: bytes) -> DeadLetter:
    """Returns a letter with the headers of the last release (docs/compatibility.md)."""
    own = {"reason": reason, "topic": topic, "partition": "3", "offset": str(origin), "pipelines": "orders-by-key"}
    headers = [(key.replace("_", "-"), value) for key, value in more.items()]
    headers += [(f"statecast-{key}", value.encode()) for key, value in own.items()]
    return DeadLetter(0, at, b"key", b"value", tuple(headers))


@pytest.fixture
def open_note(tmp_path: Path) -> Callable[..., ReplayNote]:
    """Reads the note of a topic with an id anew."""
    return lambda topic="topic-1": ReplayNote(Checkpoints(str(tmp_path), LocalFiles()), "note.json", topic)


@pytest.fixture
def note(open_note: Callable[..., ReplayNote]) -> ReplayNote:
    return open_note()


def run(letters: list[DeadLetter], note: ReplayNote, reason: str = "") -> tuple[Counter[str], list[ReplayedRecord]]:
    sent: list[ReplayedRecord] = []
    return replay(letters, "orders", note, reason, sent.append), sent


def test_a_letter_goes_back_as_the_record_that_it_was(note: ReplayNote) -> None:
    counts, [sent] = run([letter(7, origin=5, trace=b"1")], note)

    assert counts == Counter(replayed=1)
    assert sent == ReplayedRecord(
        "orders", 3, b"key", b"value", [("trace", b"1"), (REPLAYED, b"orders.dead-letter/0/7")]
    )


def test_a_second_replay_sends_nothing(note: ReplayNote) -> None:
    run([letter(7, origin=5)], note)

    assert run([letter(7, origin=5)], note) == (Counter(), [])


def test_a_record_that_was_set_aside_twice_goes_back_once(note: ReplayNote) -> None:
    counts, sent = run([letter(0, origin=5), letter(1, origin=5), letter(2, origin=6)], note)

    assert counts == Counter(replayed=2, repeated=1)
    assert len(sent) == 2


def test_other_reasons_are_left_for_another_replay(note: ReplayNote) -> None:
    letters = [letter(0, origin=5, reason="customer_id is empty"), letter(1, origin=6, reason="not a change")]

    assert run(letters, note, "customer_id")[0] == Counter(replayed=1, left=1)
    assert run(letters, note, "")[0] == Counter(replayed=1)


@pytest.mark.parametrize("reason", ["customer_id", "item_id"])
def test_a_record_that_two_pipelines_have_set_aside_goes_back_once_for_either_reason(
    note: ReplayNote, reason: str
) -> None:
    letters = [letter(0, origin=5, reason="customer_id is empty"), letter(1, origin=5, reason="item_id is empty")]

    assert run(letters, note, reason)[0] == Counter(replayed=1, repeated=1)
    assert run(letters, note, "") == (Counter(), [])


@pytest.mark.parametrize(
    "beyond", [letter(0, 5, topic="other"), letter(0, 5, statecast_truncated=b"9"), DeadLetter(0, 0, None, None, ())]
)
def test_what_cannot_be_put_back_is_passed_over(note: ReplayNote, beyond: DeadLetter) -> None:
    counts, sent = run([beyond, letter(1, origin=6)], note)

    assert counts == Counter(replayed=1, unusable=1)
    assert len(sent) == 1


def test_a_record_that_fails_again_names_only_its_last_replay(note: ReplayNote) -> None:
    again = letter(9, origin=8, statecast_replayed=b"orders.dead-letter/0/7")

    _, [sent] = run([again], note)

    assert sent.headers == [(REPLAYED, b"orders.dead-letter/0/9")]


def test_the_letters_headers_are_the_last_ones() -> None:
    forged = letter(0, 2, statecast_offset=b"1", statecast_pipelines=b"orders-by-item")

    assert forged.origin == ("orders", 3, 2)
    assert forged.pipelines == ["orders-by-key"]
    assert letter(0, 0, statecast_truncated=b"1").truncated


def test_what_was_done_is_done_after_a_restart_and_what_was_left_can_be_done_later(
    note: ReplayNote, open_note: Callable[..., ReplayNote]
) -> None:
    note.mark(0, 0)
    note.mark(0, 1, left=True)
    note.mark(0, 2)
    note.save()
    again = open_note()

    assert [again.is_done(0, offset) for offset in range(4)] == [True, False, True, False]
    assert again.starts() == {0: 1}
    assert not again.is_done(1, 0)

    again.mark(0, 1)
    again.save()

    assert open_note().starts() == {0: 3}


def test_a_note_of_the_last_release_is_read(open_note: Callable[..., ReplayNote], tmp_path: Path) -> None:
    """If this fails, letters that 0.3.0 has put back are put back again (docs/compatibility.md)."""
    (tmp_path / "note.json").write_text('{"topic_id": "topic-1", "next": {"0": 3}, "left": {"0": [1]}}')

    assert [open_note().is_done(0, offset) for offset in range(4)] == [True, False, True, False]


def test_what_is_not_saved_is_not_done(note: ReplayNote, open_note: Callable[..., ReplayNote]) -> None:
    note.mark(0, 0)

    assert not open_note().is_done(0, 0)


class NoTopics:
    """A broker without any topic."""

    def __init__(self, _: Settings) -> None:
        pass

    def missing(self, access: Mapping[str, Iterable[str]]) -> str:
        return f"no topic {', '.join(access)} at localhost:9092"

    def states(self, _: Iterable[str]) -> dict[str, TopicState]:
        return {}

    ends_of = states


@pytest.mark.parametrize("dry_run", [False, True])
def test_a_topic_of_letters_that_is_missing_is_named_before_any_letter_goes_back(
    shipped: PipelineOf, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, dry_run: bool
) -> None:
    monkeypatch.setattr(replay_module, "Topics", NoTopics)

    with pytest.raises(ConfigurationError, match=r"no topic orders\.dead-letter, stores\.dead-letter at"):
        replay_all(
            [shipped("orders-by-key"), shipped("stores-by-key")], Settings(checkpoints=str(tmp_path)), "", dry_run
        )


def test_a_topic_that_was_made_anew_begins_anew(note: ReplayNote, open_note: Callable[..., ReplayNote]) -> None:
    note.mark(0, 5)
    note.save()

    assert open_note("topic-2").starts() == {}
