"""One partition that this instance holds: its store, how far it is, and who waits for it."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import structlog

from query_service.errors import NotServedError, PoisonRecordError, StoreError
from query_service.metrics import Metrics
from query_service.storage.changes import Changes
from query_service.storage.fence import Replaced, newest_rows
from query_service.storage.place_check import PlaceCheck
from query_service.storage.plain_record import decode_plain
from query_service.storage.progress import Progress
from query_service.storage.recent_changes import RecentChanges
from query_service.storage.record import Record, decode_states
from query_service.storage.retention import unexpired, unexpired_rows
from query_service.storage.store import PartitionStore
from query_service.storage.store_definition import StoreDefinition
from query_service.storage.store_directory import Identity
from query_service.storage.store_keys import MAX_OFFSET, offset_of
from statecast.query.v1 import query_pb2

_MOST_POISON_LINES = 10

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
        definition: StoreDefinition,
        place: Place,
        store: PartitionStore,
        progress: Progress,
        changes: Changes,
        metrics: Metrics,
        wall_ms: Callable[[], int],
        place_check: PlaceCheck,
        recent: RecentChanges,
    ) -> None:
        """Takes over an open store."""
        self.definition = definition
        self.place = place
        self.store = store
        self.progress = progress
        self.changes = changes
        self.recent = recent
        self._wall_ms = wall_ms
        self._place_check = place_check
        self._decode = decode_plain if definition.plain else decode_states
        self._poison_lines = 0
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
            values = self.store.get_many(keys)
        except StoreError as error:
            raise NotServedError(str(error)) from error
        if self.definition.retain is None:
            return values
        before_ms = self._wall_ms() - self.definition.retain
        return [unexpired(value, before_ms) for value in values]

    def scan(self, first: bytes, end: bytes, *, reverse: bool) -> Iterator[tuple[bytes, bytes]]:
        """Yields rows with first <= key < end, as of one moment. Raises as `read` does."""
        try:
            rows = self.store.scan(first, end, reverse=reverse)
            retain = self.definition.retain
            yield from rows if retain is None else unexpired_rows(rows, self._wall_ms() - retain)
        except StoreError as error:
            raise NotServedError(str(error)) from error

    def versions(self, key: bytes, before_offset: int = MAX_OFFSET) -> Iterator[bytes]:
        """Yields the stored values that a key had, from the newest before this offset on. Raises as `read` does."""
        newest = self.read([key])[0]
        if newest is None:
            return
        if offset_of(newest) < before_offset:
            yield newest
        try:
            older = self.store.older_versions(key, min(before_offset, offset_of(newest)))
            retain = self.definition.retain
            before_ms = None if retain is None else self._wall_ms() - retain
            yield from (value for value in older if before_ms is None or unexpired(value, before_ms) is not None)
        except StoreError as error:
            raise NotServedError(str(error)) from error

    def apply(self, records: Sequence[Record], next_offset: int) -> None:
        """Stores what is newer among consecutive records, and the offset after them, in one atomic write.

        A record that cannot be applied is logged, counted and skipped. Raises what PartitionStore.write raises; then
        nothing has been applied.
        """
        self._poison_lines = 0
        keys, values = self._decode(records, self._skip)
        if self._poison_lines > _MOST_POISON_LINES:
            _log.warning(
                "more records skipped", records=self._poison_lines - _MOST_POISON_LINES, topic=self.place.topic
            )
        history = self.definition.history
        replaced: list[Replaced] | None = None if history is None else []
        if self.definition.plain and history is None:
            rows, stale = dict(zip(keys, values, strict=True)), 0
        else:
            rows, stale = newest_rows(keys, values, self.store.get_many(keys), replaced)
        self.store.write(rows, next_offset, self._wall_ms(), replaced or ())
        if self.definition.plain:
            self._place_check.check(keys)
        if self.progress.serving:
            self.recent.note(rows)
        else:
            self.recent.forget(next_offset - 1)
        self.progress.applied(next_offset)
        self._settle_when_serving()
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

    def tend(self, deletions_before_ms: int, most: int) -> bool:
        """Purges at most `most` of what is due, and notes on disk when all had been applied.

        Returns whether more may be due. Raises as PartitionStore.write does.
        """
        self._settle_when_serving()
        now_ms = self._wall_ms()
        retain, history = self.definition.retain, self.definition.history
        age = None if history is None else history.age
        seen = [self.store.forget_deletions(min(deletions_before_ms, now_ms - (age or 0)), most)]
        if retain is not None:
            seen.append(self.store.forget_expired(now_ms - retain, most))
        if age is not None:
            seen.append(self.store.forget_versions(now_ms - age, most))
        if self.progress.serving:
            self.store.note_current(now_ms - self.progress.lag_ms)
        return most in seen

    def start_over(self, store: PartitionStore, progress: Progress) -> None:
        """Goes on with an empty store, not serving until it has caught up again."""
        self.progress = progress
        self.store = store
        self.recent.forget(store.next_offset - 1)

    def _settle_when_serving(self) -> None:
        if self.progress.serving:
            self.store.settle()

    def _skip(self, record: Record, error: PoisonRecordError) -> None:
        self._poison.inc()
        self._poison_lines += 1
        if self._poison_lines > _MOST_POISON_LINES:
            return
        place = self.place
        _log.warning(
            "record skipped", reason=str(error), topic=place.topic, partition=place.partition, offset=record.offset()
        )
