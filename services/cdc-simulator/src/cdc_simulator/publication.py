"""The publication of committed changes to Kafka: by the simulator from its own log, or by a connector."""

from typing import Protocol

from typing_extensions import override

from cdc_simulator.pacing import Clock
from cdc_simulator.postgres import PostgresTables
from cdc_simulator.publisher import Publisher
from cdc_simulator.tables import ChangeLog

MAX_SENT_AT_ONCE = 500


class Publication(Protocol):
    """The simulator's work for Kafka, in turn with its changes; no method blocks."""

    @property
    def snapshot_lsn(self) -> int:
        """The log sequence number of the last initial row."""

    @property
    def acknowledged_lsn(self) -> int:
        """The log sequence number up to which no change needs more work."""

    def has_more(self, committed_lsn: int) -> bool:
        """Returns whether `publish` would send a change now."""

    def publish(self, committed_lsn: int) -> None:
        """Sends the changes that may be sent now. Raises DatabaseError and PublishError."""

    def save_cursor(self) -> None:
        """Saves the position up to which Kafka has all changes. Raises DatabaseError."""


class PublishedLog(Publication):
    """The tables' own log, which the simulator sends."""

    def __init__(self, log: ChangeLog, publisher: Publisher, clock: Clock) -> None:
        self._log, self._publisher, self._clock = log, publisher, clock

    @property
    @override
    def snapshot_lsn(self) -> int:
        return self._log.snapshot_lsn

    @property
    @override
    def acknowledged_lsn(self) -> int:
        return self._publisher.acknowledged_lsn

    @override
    def has_more(self, committed_lsn: int) -> bool:
        return self._publisher.sent_lsn < committed_lsn and self._publisher.room > 0

    @override
    def publish(self, committed_lsn: int) -> None:
        if self.has_more(committed_lsn):
            at_most = min(MAX_SENT_AT_ONCE, self._publisher.room)
            self._publisher.send(self._log.read(self._publisher.sent_lsn, at_most), self._clock.now_us())
        self._publisher.poll()

    @override
    def save_cursor(self) -> None:
        if self._publisher.acknowledged_lsn > self._log.acknowledged_lsn:
            self._log.acknowledge(self._publisher.acknowledged_lsn)


class ReadByConnector(Publication):
    """The log of a real database, which a connector reads: the simulator's work is done with the commit."""

    def __init__(self, tables: PostgresTables) -> None:
        self._tables = tables

    @property
    @override
    def snapshot_lsn(self) -> int:
        return self._tables.snapshot_lsn

    @property
    @override
    def acknowledged_lsn(self) -> int:
        return self._tables.log_sequence_number

    @override
    def has_more(self, committed_lsn: int) -> bool:
        return False

    @override
    def publish(self, committed_lsn: int) -> None:
        """Does nothing."""

    @override
    def save_cursor(self) -> None:
        """Does nothing."""
