"""Puts dead letters back onto their source topic, for when the file, the contract or the database was mended.

A record goes back with its key, its value and its own headers to the partition that it came from. It is an old change
by then: state drops it where the row has a newer one, so that a replay moves nothing backwards. Pipelines that could
use it the first time drop it as well, but for a route, which writes it again.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import structlog

from stream_processor.letters.letter_reader import Header, Letter
from stream_processor.letters.replay_note import ReplayNote
from stream_processor.steps.letter_headers import REPLAYED

log = structlog.get_logger()


@dataclass(frozen=True)
class ReturnedRecord:
    """What is put back."""

    topic: str
    partition: int
    key: bytes | None
    value: bytes | None
    headers: list[Header]


@dataclass
class Counts:
    """What became of the letters: put back; left for another replay; beyond replay; repetitions of others."""

    replayed: int = 0
    left: int = 0
    unusable: int = 0
    repeated: int = 0


def replay(
    letters: Iterable[Letter],
    source: str,
    letter_topic: str,
    note: ReplayNote,
    reason: str,
    send: Callable[[ReturnedRecord], None],
) -> Counts:
    """Sends what the letters of `source` hold, of those that are not done and have `reason` in theirs; updates `note`.

    A record that was set aside twice, as after a crash, is sent once. The caller saves the note when Kafka has what was
    sent.
    """
    counts, seen = Counts(), set[tuple[str, int, int]]()
    for letter in letters:
        if note.is_done(letter.partition, letter.offset):
            continue
        origin = letter.origin
        if origin is None or origin[0] != source or letter.truncated:
            why = (
                "a part of the record is missing" if letter.truncated else f"it does not say where on {source} it stood"
            )
            log.warning("cannot be put back", letter=_place(letter_topic, letter), origin=origin, reason=why)
            counts.unusable += 1
        elif reason not in letter.reason:
            counts.left += 1
            note.leave(letter.partition, letter.offset)
            continue
        elif origin in seen:
            counts.repeated += 1
        else:
            seen.add(origin)
            send(_returned(letter, origin, letter_topic))
            counts.replayed += 1
        note.done(letter.partition, letter.offset)
    return counts


def _returned(letter: Letter, origin: tuple[str, int, int], letter_topic: str) -> ReturnedRecord:
    topic, partition, _ = origin
    own = [header for header in letter.original_headers if header[0] != REPLAYED]
    headers = [*own, (REPLAYED, _place(letter_topic, letter).encode())]
    return ReturnedRecord(topic, partition, letter.key, letter.value, headers)


def _place(topic: str, letter: Letter) -> str:
    return f"{topic}/{letter.partition}/{letter.offset}"
