"""Checkpoints of an instance's partitions: their files as of one moment, kept on disk while others read them."""

import shutil
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Any
from uuid import uuid4

from query_service.errors import (
    CheckpointGoneError,
    CheckpointRefusedError,
    NotServedError,
    OverloadedError,
    StoreError,
)
from query_service.metrics import Metrics
from query_service.storage import store_keys
from query_service.storage.replica import Replica
from query_service.storage.store_directory import Topic
from query_service.storage.stores_file import CHECKPOINTS, StoreDefinition
from statecast.shard.v1 import shard_service_pb2 as shard

MAX_PIECE_BYTES = 1 << 20
KEPT_S = 15.0
"""How long a checkpoint is kept that nobody reads."""
ORIGIN = ("topic", "topic_id", "partitions", "format", "rules")
"""Fields of a checkpoint that say where its rows are from; only a store of the same origin goes on from them."""


@dataclass(eq=False)
class Checkpoints:
    """At most `max_kept` at a time, below the data directory, so that their files are hard links and cost no space.

    Files that the store compacts away stay on disk until the checkpoint is deleted, or nobody has read it for `KEPT_S`.
    Any thread may call; all but `expire` block on the disk.
    """

    root: Path
    max_kept: int
    metrics: Metrics
    monotonic: Callable[[], float]
    _kept: dict[str, tuple[frozenset[str], float]] = field(default_factory=dict, init=False)
    """The names of the files of each checkpoint, and when it was last read."""
    _making: int = field(default=0, init=False)
    _lock: Lock = field(default_factory=Lock, init=False)

    def create(self, replica: Replica) -> shard.CreateCheckpointResponse:
        """Raises CheckpointRefusedError, OverloadedError, or NotServedError when the store cannot be read now."""
        definition = replica.definition
        if definition.in_memory:
            raise CheckpointRefusedError(f"the store `{definition.name}` is in memory: it has no files")
        self.expire()
        with self._lock:
            if len(self._kept) + self._making >= self.max_kept:
                raise OverloadedError(f"{self.max_kept} checkpoints are being read already: ask again later")
            self._making += 1
        try:
            checkpoint = self._create(replica)
            with self._lock:
                names = frozenset(each.name for each in checkpoint.files)
                self._kept[checkpoint.checkpoint_id] = names, self.monotonic()
        except (StoreError, OSError) as error:
            raise NotServedError(f"no checkpoint of `{definition.name}` can be made now: {error}") from error
        finally:
            with self._lock:
                self._making -= 1
            self._show()
        return checkpoint

    def read(self, checkpoint_id: str, file: str, offset: int, length: int) -> shard.ReadCheckpointResponse:
        """Returns `length` bytes, fewer at the end or above MAX_PIECE_BYTES. Raises CheckpointGoneError."""
        with self._lock:
            names, _ = self._kept.get(checkpoint_id, (frozenset[str](), 0.0))
            if file not in names or offset < 0 or length < 0:
                raise CheckpointGoneError(f"there is no file `{file}` of a checkpoint `{checkpoint_id}`")
            self._kept[checkpoint_id] = names, self.monotonic()
        try:
            with (self._path(checkpoint_id) / file).open("rb") as opened:
                opened.seek(offset)
                data = opened.read(min(length, MAX_PIECE_BYTES))
        except OSError as error:
            raise CheckpointGoneError(f"the file `{file}` of the checkpoint cannot be read: {error}") from error
        self.metrics.seed_bytes.labels("given").inc(len(data))
        return shard.ReadCheckpointResponse(data=data, crc32=zlib.crc32(data))

    def delete(self, checkpoint_id: str) -> None:
        """Does nothing when there is no such checkpoint."""
        with self._lock:
            known = self._kept.pop(checkpoint_id, None)
        if known is not None:
            shutil.rmtree(self._path(checkpoint_id), ignore_errors=True)
            self._show()

    def expire(self) -> None:
        """Deletes those that nobody has read for `KEPT_S`."""
        before = self.monotonic() - KEPT_S
        with self._lock:
            expired = [each for each, (_, read_at) in self._kept.items() if read_at < before]
        for checkpoint_id in expired:
            self.delete(checkpoint_id)

    def delete_all(self) -> None:
        """Deletes all, also those of an earlier process."""
        with self._lock:
            self._kept.clear()
        shutil.rmtree(self.root / CHECKPOINTS, ignore_errors=True)
        self._show()

    def _create(self, replica: Replica) -> shard.CreateCheckpointResponse:
        checkpoint_id = uuid4().hex
        path = self._path(checkpoint_id)
        path.parent.mkdir(parents=True, exist_ok=True)
        next_offset = replica.store.next_offset
        try:
            replica.store.checkpoint(path)
            files = [shard.CheckpointFile(name=each.name, size=each.stat().st_size) for each in sorted(path.iterdir())]
        except (StoreError, OSError):
            shutil.rmtree(path, ignore_errors=True)
            raise
        origin = origin_of(replica.definition, replica.topic)
        return shard.CreateCheckpointResponse(
            checkpoint_id=checkpoint_id, next_offset=next_offset, files=files, **origin
        )

    def _path(self, checkpoint_id: str) -> Path:
        return self.root / CHECKPOINTS / checkpoint_id

    def _show(self) -> None:
        self.metrics.checkpoints.set(len(self._kept))


@dataclass(eq=False)
class Pace:
    """Spreads bytes over time: at most `bytes_per_s` on average."""

    bytes_per_s: float
    monotonic: Callable[[], float]
    _free_at: float = field(default=0.0, init=False)

    def delay_s(self, size: int) -> float:
        """Returns how long to wait before so many bytes, and counts them."""
        now = self.monotonic()
        begins_at = max(now, self._free_at)
        self._free_at = begins_at + size / self.bytes_per_s
        return begins_at - now


def is_file_name(name: str) -> bool:
    """Returns whether a name that somebody else gives to a file lies in the directory where it is put."""
    return bool(name) and name not in (".", "..") and "/" not in name and "\0" not in name


def origin_of(definition: StoreDefinition, topic: Topic) -> dict[str, Any]:
    """Returns the ORIGIN of a store's rows on this instance."""
    rules = store_keys.rules_of(definition)
    values = (topic.name, topic.topic_id, topic.partitions, store_keys.FORMAT, rules)
    return dict(zip(ORIGIN, values, strict=True))
