"""What a writer of a keyed topic has put there, and when it knew that each record was there."""

from bisect import bisect_left
from collections import defaultdict
from dataclasses import dataclass


@dataclass(frozen=True)
class Acknowledged:
    """One record that counts by the fence; `at` is a time of the monotonic clock. `payload` is None in a deletion."""

    at: float
    offset: int
    sequence: int
    payload: bytes | None


class StateLog:
    """One thread notes, any thread asks.

    The acknowledgements of one partition come in the order of its offsets. A record whose sequence is not higher than
    that of an earlier one of its key is a replay: it has an offset, and changes nothing.
    """

    def __init__(self) -> None:
        """Knows nothing."""
        self._records: defaultdict[str, list[Acknowledged]] = defaultdict(list)
        self._partitions: defaultdict[int, list[tuple[float, int]]] = defaultdict(list)
        self.partition_of: dict[str, int] = {}

    def note(self, partition: int, key: str, record: Acknowledged) -> None:
        """Takes an acknowledgement."""
        known = self._records[key]
        if not known or record.sequence > known[-1].sequence:
            known.append(record)
        self._partitions[partition].append((record.at, record.offset))
        self.partition_of[key] = partition

    @property
    def count(self) -> int:
        """How many records there are, replays too."""
        return sum(len(acknowledged) for acknowledged in self._partitions.values())

    def newest(self) -> dict[str, Acknowledged]:
        """The newest record of each key."""
        return {key: records[-1] for key, records in self._records.items()}

    def ends(self) -> dict[int, int]:
        """The last offset of each partition that has one."""
        return {partition: acknowledged[-1][1] for partition, acknowledged in self._partitions.items()}

    def due(self, key: str, before: float) -> Acknowledged | None:
        """The newest record of a key that was acknowledged before a time."""
        records = self._records[key]
        place = bisect_left(records, before, key=lambda record: record.at)
        return records[place - 1] if place else None

    def due_through(self, partition: int, before: float) -> int:
        """The last offset of a partition that was acknowledged before a time; -1 when there is none."""
        acknowledged = self._partitions[partition]
        place = bisect_left(acknowledged, before, key=lambda each: each[0])
        return acknowledged[place - 1][1] if place else -1
