"""Remembers which dead letters have been dealt with, so that a second replay does not put them back again."""

import json
from pathlib import Path


class ReplayNote:
    """The offsets of one dead-letter topic that are done: all before `next`, but for those in `left`, by partition.

    Kept in one file, which `save` replaces as a whole. A topic that was made anew, which its id tells, begins anew.
    """

    def __init__(self, file: Path, topic_id: str) -> None:
        self._file = file
        self._topic_id = topic_id
        content = json.loads(file.read_text()) if file.exists() else {}
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
        """Writes the file."""
        left = {partition: sorted(offsets) for partition, offsets in self._left.items() if offsets}
        content = {"topic_id": self._topic_id, "next": self._next, "left": left}
        self._file.parent.mkdir(parents=True, exist_ok=True)
        replacement = self._file.with_suffix(".json.new")
        replacement.write_text(json.dumps(content) + "\n")
        replacement.replace(self._file)

    def _pass(self, partition: int, offset: int) -> None:
        self._next[partition] = max(self._next.get(partition, 0), offset + 1)
