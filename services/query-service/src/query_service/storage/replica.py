"""One partition that this instance holds: its store, how far it has been applied, and which calls wait for it."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import structlog

from query_service.errors import NotServedError, PoisonRecordError, StoreError, StoreUnusableError
from query_service.logged import Logged
from query_service.metrics import Metrics
from query_service.storage.changes import Changes
from query_service.storage.engine import Skip
from query_service.storage.form_check import FormCheck
from query_service.storage.progress import Freshness, Progress
from query_service.storage.record import Record, Replaced, decode_plain, decode_states, newest_rows
from query_service.storage.spread import Spread
from query_service.storage.store import PartitionStore
from query_service.storage.store_directory import Topic
from query_service.storage.store_keys import DELETED, HEADER, MAX_OFFSET, UNTIMED, commit_ms_of, offset_of
from query_service.storage.stores_file import StoreDefinition

_UNTIMED = (
    "the time of a record is not of the years 1970 to 9999, as of a producer that counts microseconds: "
    "the row is served, its commit time is not known, and it is never too old to be kept"
)
_EXPIRED = HEADER.pack(0, 0, 0, 0, 0, DELETED | UNTIMED)

_log = structlog.get_logger()

TopicPartition = tuple[str, int]


@dataclass(eq=False)
class Replica:
    """The changelog's thread calls methods that change the store, as `apply` and `close`; the event loop all others."""

    definition: StoreDefinition
    topic: Topic
    partition: int
    store: PartitionStore
    progress: Progress
    changes: Changes
    metrics: Metrics
    wall_ms: Callable[[], int]
    logged: Logged = field(default_factory=Logged)

    def __post_init__(self) -> None:
        self._form_check = FormCheck(self.definition, self.logged)
        self._spread = Spread(self.definition.partitioner, self.topic.partitions, self.partition)
        self._misplaced = self.metrics.misplaced_records.labels(self.definition.name)
        self._decode = decode_plain if self.definition.plain else decode_states
        self._refused: Counter[str] = Counter()
        self._was_current = self.store.next_offset > 0
        self._corrupt: StoreUnusableError | None = None  # as a read has seen it; nothing that is written would
        self._applied, self._older = (
            self.metrics.records.labels(self.definition.name, outcome, "") for outcome in ("applied", "older")
        )

    @property
    def topic_partition(self) -> TopicPartition:
        return self.topic.name, self.partition

    @property
    def behind_ms(self) -> int:
        """How long ago the rows were those of the log, also before this process; 0 for rows that never were."""
        if self.progress.serving:
            return self.progress.unread_ms
        return self.wall_ms() - self.store.current_ms if self._was_current else 0

    def freshness(self, instance: str) -> Freshness:
        """Returns how old a result may be that is read after this call."""
        lag_records, lag_ms, applied_offset = self.progress.measure()
        return Freshness(self.partition, lag_records, lag_ms, self.topic.epoch, applied_offset, instance)

    def read(self, keys: list[bytes]) -> list[bytes | None]:
        """Returns stored values. Raises NotServedError when the store cannot be read, or is read anew: ask another."""
        try:
            values = self._serving_store().get_many(keys)
        except StoreError as error:
            raise self._unread(error) from error
        retain_ms = self.definition.retain_ms
        if retain_ms is None:
            return values
        before_ms = self.wall_ms() - retain_ms
        return [unexpired(value, before_ms) for value in values]

    def get(self, key: bytes) -> bytes | None:
        """Returns a stored value on the event loop. Raises as `read` does, and ColdError where it takes a thread."""
        try:
            value = self._serving_store().get(key)
        except StoreError as error:
            raise self._unread(error) from error
        retain_ms = self.definition.retain_ms
        return value if retain_ms is None else unexpired(value, self.wall_ms() - retain_ms)

    def is_at_hand(self, keys: list[bytes]) -> bool:
        """Returns whether `read` waits for no disk."""
        try:
            return self.store.is_at_hand(keys)
        except StoreError:
            return True  # the read raises it

    def scan(
        self, first: bytes, end: bytes, *, reverse: bool, skip: Skip | None = None
    ) -> Iterator[tuple[bytes, bytes]]:
        """Yields rows with first <= key < end that are not skipped, as of one moment. Raises as `read` does."""
        try:
            rows = self._serving_store().scan(first, end, reverse=reverse, skip=skip)
            retain_ms = self.definition.retain_ms
            yield from rows if retain_ms is None else unexpired_rows(rows, self.wall_ms() - retain_ms)
        except StoreError as error:
            raise self._unread(error) from error

    def deletions(self, first: bytes, end: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Yields the deletion markers of rows with first <= key < end; a row may have come since. Raises as `read`."""
        try:
            yield from self.store.deletions(first, end)
        except StoreError as error:
            raise self._unread(error) from error

    def versions(self, key: bytes, before_offset: int = MAX_OFFSET) -> Iterator[bytes]:
        """Yields the stored values that a key had, from the newest before this offset on. Raises as `read` does."""
        newest = self.read([key])[0]
        if newest is None:
            return
        if offset_of(newest) < before_offset:
            yield newest
        try:
            older = self._serving_store().older_versions(key, min(before_offset, offset_of(newest)))
            retain_ms = self.definition.retain_ms
            before_ms = None if retain_ms is None else self.wall_ms() - retain_ms
            yield from (value for value in older if before_ms is None or unexpired(value, before_ms) is not None)
        except StoreError as error:
            raise self._unread(error) from error

    def apply(self, records: Sequence[Record], next_offset: int) -> None:
        """Stores the newer ones of consecutive records, and the offset after them, in one atomic write.

        A record that cannot be applied is counted and refused; the log has the first of a store with each reason. Every
        record is counted once. Raises as PartitionStore.write does; then nothing has been applied, nor counted.
        """
        self._refused.clear()
        keys, values = self._decode(records, self._refuse, self._note_untimed)
        replaced: list[Replaced] | None = None if self.definition.history is None else []
        if self.definition.plain and replaced is None:
            rows, older = dict(zip(keys, values, strict=True)), 0
        else:
            rows, older = newest_rows(keys, values, self.store.replaced_by(keys), replaced)
        misplaced = self._spread.misplaced(keys)
        self.store.write(rows, next_offset, self.wall_ms(), replaced or (), misplaced)
        self._misplaced.inc(len(misplaced))
        if self.definition.plain:
            self._form_check.check(keys, values)
        if self.progress.serving:
            self.changes.note(rows)
        else:
            self.changes.forget(next_offset - 1)
        self.progress.note_applied(next_offset)
        if self.progress.serving:
            self.store.finish_restore()
        self._applied.inc(len(keys) - older)
        self._older.inc(older)
        for reason, records_refused in self._refused.items():
            self.metrics.records.labels(self.definition.name, "refused", reason).inc(records_refused)
        self.changes.announce(rows.keys())

    def advance_to(self, offset: int) -> None:
        """Notes that the log has no record before this offset that has not been applied."""
        if offset > self.progress.next_offset:
            self.store.write({}, offset, self.wall_ms())
            self.progress.note_applied(offset)
            self.changes.announce(())

    def note_held_back(self) -> None:
        """Serves although records wait behind an open transaction; for a new store, the time of waiting is unknown."""
        since_ms = self.store.current_ms if self._was_current else 0
        self.progress.note_held_back((self.wall_ms() - since_ms) / 1000)

    def note_end_offset(self, offset: int, asked_at: float) -> None:
        self.progress.note_end_offset(offset, asked_at)
        self.changes.announce(())

    def run_maintenance(self, deletions_before_ms: int, checkpointed_offset: int, limit: int) -> bool:
        """Purges at most `limit` entries of each kind that are due, or none, and notes when all had been applied.

        Of a keyed topic, deletions from `checkpointed_offset` on are kept: the records before them may come again.
        Returns whether more may be due. Raises as PartitionStore.write does, and StoreUnusableError for a corrupt block
        that a read has met.
        """
        if self._corrupt is not None:
            raise self._corrupt
        if self.progress.serving:
            self.store.finish_restore()
        now_ms = self.wall_ms()
        retain_ms, versions_ms = self.definition.retain_ms, self.definition.versions_ms
        before_offset = MAX_OFFSET if self.definition.plain else checkpointed_offset
        seen = [self.store.purge_deletions(min(deletions_before_ms, now_ms - (versions_ms or 0)), limit, before_offset)]
        if retain_ms is not None:
            seen.append(self.store.purge_expired(now_ms - retain_ms, limit))
        if versions_ms is not None:
            seen.append(self.store.purge_versions(now_ms - versions_ms, limit))
        if self.progress.serving:
            self.store.note_current(now_ms - self.progress.unread_ms)
        return 0 < limit in seen

    def start_over(self, store: PartitionStore, progress: Progress) -> None:
        """Goes on with an empty store, not serving until it has caught up again."""
        self.progress = progress
        self.store = store
        self._was_current, self._corrupt = False, None
        self.changes.forget(store.next_offset - 1)
        self.changes.announce(None)

    def close(self) -> None:
        """Closes the store; calls that wait for a change ask another replica."""
        self.store.close()
        self.changes.announce(None)

    def _serving_store(self) -> PartitionStore:
        """Returns the store, unless it holds only a part: the changelog may start over while a call waits."""
        store = self.store
        if not self.progress.serving:  # after the store: `start_over` sets the two in the other order
            raise NotServedError(f"partition {self.partition} of `{self.definition.name}` is being rebuilt: try again")
        return store

    def _unread(self, error: StoreError) -> NotServedError:
        """Returns the failure of a read; another replica is asked, while the changelog reads a corrupt store anew."""
        if isinstance(error, StoreUnusableError):
            self._corrupt = error
        return NotServedError(str(error))

    def _refuse(self, record: Record, error: PoisonRecordError) -> None:
        self._refused[error.reason] += 1
        if self.logged.is_new((self.definition.name, "refused", error.reason)):
            event = "a record is refused; query_service_records_total counts others like it"
            _log.warning(event, store=self.definition.name, reason=str(error), **self._place_of(record))

    def _note_untimed(self, record: Record) -> None:
        if self.logged.is_new((self.definition.name, "untimed")):
            _log.warning(_UNTIMED, store=self.definition.name, **self._place_of(record))

    def _place_of(self, record: Record) -> dict[str, object]:
        return {"topic": self.topic.name, "partition": self.partition, "offset": record.offset()}


def unexpired(value: bytes | None, before_ms: int) -> bytes | None:
    """Returns a stored value, or None if it was committed before this time."""
    if value is None:
        return None
    commit_ms = commit_ms_of(value)
    return None if commit_ms is not None and commit_ms < before_ms else value


def unexpired_rows(rows: Iterator[tuple[bytes, bytes]], before_ms: int) -> Iterator[tuple[bytes, bytes]]:
    """Yields rows; those that were committed before this time as deleted, so that readers still count them."""
    for key, value in rows:
        yield key, unexpired(value, before_ms) or _EXPIRED
