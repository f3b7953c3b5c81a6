"""Finds how far the log is acknowledged without a gap, while partitions acknowledge in any order; pure."""


class Acknowledgements:
    """The log sequence numbers that were acknowledged, beginning after `acknowledged`."""

    def __init__(self, acknowledged: int) -> None:
        self.lsn = acknowledged
        """The highest log sequence number up to which every change is acknowledged."""
        self._early: set[int] = set()

    def add(self, lsn: int) -> None:
        """Notes that one change is acknowledged."""
        self._early.add(lsn)
        while self.lsn + 1 in self._early:
            self.lsn += 1
            self._early.remove(self.lsn)
