"""One partition that this instance holds: its store, how far it is, and who waits for it."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import structlog

from query_service.changes import Changes
from query_service.errors import NotServedError, PoisonRecordError, StoreError
from query_service.fence import newest_rows
from query_service.metrics import Metrics
from query_service.progress import Progress
from query_service.record import Record, row_key_of, stored_value_of
from query_service.store import PartitionStore
from query_service.store_directory import Identity
from statecast.query.v1 import query_pb2

_log = structlog.get_logger()


@dataclass(frozen=True)
class Place:
    """Which partition of which topic a host holds, for which store; `epoch` is that of its positions."""

    store: str
    topic: str
    partition: int
    epoch: int
    identity: Identity


class PartitionHost:
    """Applies records to the store and says how fresh it is.

    The changelog's thread calls `apply`, `reached` and `tend`; the topic watch's thread `saw_end`; reads come from the
    event loop.
    """

    def __init__(
        self,
        place: Place,
        store: PartitionStore,
        progress: Progress,
        changes: Changes,
        metrics: Metrics,
        wall_ms: Callable[[], int],
    ) -> None:
        """Takes over an open store."""
        self.place = place
        self.store = store
        self.progress = progress
        self.changes = changes
        self._wall_ms = wall_ms
        outcomes = ("applied", "stale", "poison")
        self._applied, self._stale, self._poison = (metrics.records.labels(place.store, each) for each in outcomes)

    def freshness(self, instance: str) -> query_pb2.Freshness:
        """Returns how old an answer may be that is read after this call."""
        progress = self.progress
        freshness = query_pb2.Freshness(
            partition=self.place.partition,
            lag_records=progress.lag_records,
            lag_ms=progress.lag_ms,
            answered_by=instance,
        )
        freshness.current_through.epoch = self.place.epoch
        freshness.current_through.offset = progress.current_through
        return freshness

    def read(self, keys: list[bytes]) -> list[bytes | None]:
        """Returns stored values. Raises NotServedError when the store cannot be read: another replica can."""
        try:
            return self.store.get_many(keys)
        except StoreError as error:
            raise NotServedError(str(error)) from error

    def scan(self, first: bytes, end: bytes, *, reverse: bool) -> Iterator[tuple[bytes, bytes]]:
        """Yields rows with first <= key < end, as of one moment. Raises as `read` does."""
        try:
            yield from self.store.scan(first, end, reverse=reverse)
        except StoreError as error:
            raise NotServedError(str(error)) from error

    def apply(self, records: Sequence[Record], next_offset: int) -> None:
        """Stores what is newer among consecutive records, and the offset after them, in one atomic write.

        A record that cannot be applied is logged, counted and skipped. Raises what PartitionStore.write raises; then
        nothing has been applied.
        """
        keys: list[bytes] = []
        values: list[bytes] = []
        for record in records:
            try:
                key, value = row_key_of(record), stored_value_of(record)
            except PoisonRecordError as error:
                self._skip(record, error)
                continue
            keys.append(key)
            values.append(value)
        rows, stale = newest_rows(keys, values, self.store.get_many(keys))
        self.store.write(rows, next_offset, self._wall_ms())
        self.progress.applied(next_offset)
        self._applied.inc(len(keys) - stale)
        self._stale.inc(stale)
        self.changes.announce(rows.keys())

    def reached(self, offset: int) -> None:
        """Notes that the log has no record before this offset that has not been applied."""
        if offset > self.progress.next_offset:
            self.store.write({}, offset, self._wall_ms())
            self.progress.applied(offset)
            self.changes.announce(())

    def saw_end(self, end_offset: int, asked_at: float) -> None:
        """Notes the end of the topic, as of a time of the monotonic clock."""
        self.progress.saw_end(end_offset, asked_at)
        self.changes.announce(())

    def tend(self, deletions_before_ms: int, most: int) -> None:
        """Forgets old deletions, and notes on disk when all had been applied. Raises as PartitionStore.write does."""
        self.store.forget_deletions(deletions_before_ms, most)
        if self.progress.serving:
            self.store.note_current(self._wall_ms() - self.progress.lag_ms)

    def start_over(self, store: PartitionStore, progress: Progress) -> None:
        """Goes on with an empty store, not serving until it has caught up again."""
        self.progress = progress
        self.store = store

    def _skip(self, record: Record, error: PoisonRecordError) -> None:
        self._poison.inc()
        place = self.place
        _log.warning(
            "record skipped", reason=str(error), topic=place.topic, partition=place.partition, offset=record.offset()
        )
