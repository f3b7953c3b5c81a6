"""Checks every answer to one reader against its earlier answers and the writes acknowledged by then."""

from dataclasses import dataclass

from drivers.state_writer import StateLog, sequence_in
from statecast.query.v1.query_pb2 import Absence, Freshness, State
from statecast.state.v1.state_pb2 import Position


@dataclass(frozen=True)
class Seen:
    """A reader's last state of a key; `sequence` is None when the key was absent."""

    position: Position
    sequence: int | None


class StateChecks:
    """Remembers the states that one reader has seen. Adds broken promises to `broken` as sentences; raises nothing."""

    def __init__(self, log: StateLog, reader_name: str) -> None:
        """Compares with the log; `reader_name` begins each sentence."""
        self.seen: dict[str, Seen] = {}
        self.broken: list[str] = []
        self.answers = 0
        self._log = log
        self._reader_name = reader_name

    def value(self, key: str, held: Seen | None, state: State, freshness: Freshness, began: float) -> None:
        """Takes a value; `held` is the reader's state, and `began` the monotonic time, when it made the call."""
        self._take(key, held, Seen(state.position, sequence_in(state.payload)), freshness, began)

    def absence(self, key: str, held: Seen | None, absence: Absence, freshness: Freshness, began: float) -> None:
        """Takes an absence. Every key has been written, and deletions are remembered: it must be a known deletion."""
        if not absence.deleted:
            self._break(key, freshness, "was answered as never seen")
        self._take(key, held, Seen(absence.position, None), freshness, began)

    def unchanged(self, key: str, held: Seen, freshness: Freshness, began: float) -> None:
        """Takes the absence of a key from a batch's answer: nothing is newer than the reader's state."""
        self.answers += 1
        self._fresh(key, held.position.offset, freshness, began)

    def _take(self, key: str, held: Seen | None, now: Seen, freshness: Freshness, began: float) -> None:
        self.answers += 1
        if held is not None:
            self._newer(key, held, now, freshness)
        self._fresh(key, now.position.offset, freshness, began)
        known = self.seen.get(key)
        if known is None or now.position.offset > known.position.offset:
            self.seen[key] = now

    def _newer(self, key: str, before: Seen, now: Seen, freshness: Freshness) -> None:
        if now.position.epoch != before.position.epoch:
            self._break(key, freshness, f"changed its epoch from {before.position.epoch} to {now.position.epoch}")
        elif now.position.offset < before.position.offset:
            self._break(key, freshness, f"went back from {before.position.offset} to {now.position.offset}")
        elif now.position.offset == before.position.offset and now.sequence != before.sequence:
            self._break(key, freshness, f"has two values at {now.position.offset}")
        elif None not in (now.sequence, before.sequence) and (now.sequence or 0) < (before.sequence or 0):
            self._break(key, freshness, f"went back from sequence {before.sequence} to {now.sequence}")

    def _fresh(self, key: str, offset: int, freshness: Freshness, began: float) -> None:
        promised = began - freshness.lag_ms / 1000
        due = self._log.due(key, promised)
        if due is not None and offset < due.offset:
            late_ms = (promised - due.at) * 1000
            self._break(key, freshness, f"misses {due.offset}, acknowledged {late_ms:.0f} ms before its lag allows")
        through = self._log.due_through(freshness.partition, promised)
        if freshness.current_through.offset < through:
            self._break(key, freshness, f"is current through {freshness.current_through.offset}, not {through}")

    def _break(self, key: str, freshness: Freshness, what: str) -> None:
        how = "forwarded" if freshness.forwarded else "itself"
        self.broken.append(
            f"{self._reader_name}: {key} {what} (by {freshness.answered_by}, {how}, lag {freshness.lag_ms} ms)"
        )
