"""Remembers which dead letters have been dealt with, so that a second replay does not put them back again."""

from stream_processor.operation.notes import Notes


class ReplayNote:
    """The offsets of one dead-letter topic that are done: all before `next`, but for those in `left`, by partition.

    Kept in one note, which `save` replaces as a whole. A topic that was made anew, which its id tells, begins anew.
    """

    def __init__(self, notes: Notes, name: str, topic_id: str) -> None:
        self._notes = notes
        self._name = name
        self._topic_id = topic_id
        content = notes.read(name) or {}
        same = content.get("topic_id") == topic_id
        self._next = {int(key): value for key, value in content.get("next", {}).items()} if same else {}
        self._left = {int(key): set(value) for key, value in content.get("left", {}).items()} if same else {}

    def starts(self) -> dict[int, int]:
        """The first offset of each partition that may not be done."""
        return {partition: min([after, *self._left.get(partition, ())]) for partition, after in self._next.items()}

    def is_done(self, partition: int, offset: int) -> bool:
        """Whether the letter has been dealt with."""
        return offset < self._next.get(partition, 0) and offset not in self._left.get(partition, ())

    def done(self, partition: int, offset: int) -> None:
        """The letter has been dealt with."""
        self._left.get(partition, set()).discard(offset)
        self._pass(partition, offset)

    def leave(self, partition: int, offset: int) -> None:
        """The letter waits for another replay."""
        self._left.setdefault(partition, set()).add(offset)
        self._pass(partition, offset)

    def save(self) -> None:
        """Writes the note. Raises CheckpointsUnusableError."""
        left = {partition: sorted(offsets) for partition, offsets in self._left.items() if offsets}
        self._notes.replace(self._name, {"topic_id": self._topic_id, "next": self._next, "left": left})

    def _pass(self, partition: int, offset: int) -> None:
        self._next[partition] = max(self._next.get(partition, 0), offset + 1)
