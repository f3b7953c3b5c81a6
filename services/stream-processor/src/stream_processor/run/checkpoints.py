"""The place of checkpoints, which one process holds at a time, and the definitions behind each checkpoint."""

import fcntl
import json
import os
import re
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Event, Thread
from typing import Any, TypeAlias
from uuid import uuid4

import structlog
from pyspark.sql import SparkSession
from typing_extensions import override

from statecast_domains.pipeline_file import LEASE, LOCK
from statecast_domains.values import EARLIEST
from statecast_service.errors import SettingsError
from stream_processor.errors import (
    CheckpointsTakenError,
    CheckpointsUnusableError,
    NoteDamagedError,
    PipelineChangedError,
)
from stream_processor.run.plan import GROWN, QueryPlan
from stream_processor.spark_internals import JVM_ERRORS, CheckpointFiles, jvm_reason

log = structlog.get_logger()

PARALLELISM = "parallelism"
PARTITIONS = "source.partitions"
STATE_VERSION = 5
"""Version of the state's content. Raised when an older state cannot be read any more."""
MAY_CHANGE = {"name", "trigger", "dead_letters", "forget_deleted", "store", "state", PARALLELISM}
"""Keys of a file that may change: state and topic hold the same things after it."""
NAMES = {"state": "the form of the state"}
"""Names for people of the notes beside a checkpoint that are no keys of a file."""
LEASE_NOTE = f"{LEASE}.json"
RENEW_S = 3.0
ABANDONED_S = 15.0
"""A lease that nobody has renewed for so long is free. Several times RENEW_S, because a file system may be slow."""
LEASE_POLL_S = 0.5
_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/")


class LocalFiles:
    """Files of this machine, for which Spark need not run."""

    def exists(self, path: str) -> bool:
        return Path(path).exists()

    def read(self, path: str) -> bytes:
        return Path(path).read_bytes()

    def replace(self, path: str, content: bytes) -> None:
        replacement = Path(f"{path}.new")
        replacement.parent.mkdir(parents=True, exist_ok=True)
        replacement.write_bytes(content)
        replacement.replace(path)


Files: TypeAlias = LocalFiles | CheckpointFiles


@contextmanager
def _usable(root: str) -> Iterator[None]:
    try:
        yield
    except JVM_ERRORS as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else jvm_reason(error)
        raise CheckpointsUnusableError(f"STREAM_PROCESSOR_CHECKPOINTS: cannot use {root}: {reason}") from error


@dataclass
class Checkpoints:
    """The place of all checkpoints of one process, each below `root` by the name of its query.

    Notes, small JSON objects, stand beside them. Every call that touches a file may block as long as its file system
    does, and raises CheckpointsUnusableError.
    """

    root: str
    files: Files

    def location(self, name: str) -> str:
        """Returns the path that Spark takes as the query's checkpoint."""
        return f"{self.root}/{name}"

    def exists(self, query: str) -> bool:
        with _usable(self.root):
            return self.files.exists(self.location(query))

    def read(self, name: str) -> dict[str, Any] | None:
        """Returns the note, None if there is none. Raises NoteDamagedError when it is no JSON object."""
        with _usable(self.root):
            if not self.files.exists(self.location(name)):
                return None
            content = self.files.read(self.location(name))
        try:
            note = json.loads(content)
        except ValueError as error:
            raise NoteDamagedError(f"{self.location(name)} is not JSON: {error}") from error
        if not isinstance(note, dict):
            raise NoteDamagedError(f"{self.location(name)} is no JSON object")
        return note

    def replace(self, name: str, content: Mapping[str, object]) -> None:
        """Writes the note: no reader sees a part of it, but some file systems may show none for a moment."""
        with _usable(self.root):
            self.files.replace(self.location(name), json.dumps(content, indent=2).encode() + b"\n")

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Keeps other processes off for as long as the context lasts. Raises SettingsError when another holds it."""
        # The kernel lets go of the lock however this process ends.
        with ExitStack() as stack:
            with _usable(self.root):
                Path(self.root).mkdir(parents=True, exist_ok=True)
                lock = stack.enter_context(Path(self.location(LOCK)).open("w"))
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise _in_use(self.root, "another process") from error
            yield

    def check(self) -> None:
        """Raises CheckpointsTakenError when the place that this process holds has gone to another. Never blocks."""


@dataclass
class LeasedCheckpoints(Checkpoints):
    """Checkpoints on a file system that has no locks: a note names the process, which renews it while it lives.

    Another process watches the note by its own clock. docs/operation.md describes the limits of such a lease.
    """

    clock: Callable[[], float] = time.monotonic
    pause: Callable[[float], object] = time.sleep
    _token: str = field(default_factory=lambda: uuid4().hex, init=False)
    _renewals: int = field(default=0, init=False)
    _renewed: float = field(default=0.0, init=False)
    _lost: str = field(default="", init=False)

    @override
    @contextmanager
    def hold(self) -> Iterator[None]:
        """Takes the lease, renews it from a thread of its own, and releases it."""
        self.take()
        ended = Event()
        renewer = Thread(target=self._keep, args=(ended,), name=LEASE, daemon=True)
        renewer.start()
        try:
            yield
        finally:
            ended.set()
            renewer.join()
            self.release()

    @override
    def check(self) -> None:
        if self._lost:
            raise CheckpointsTakenError(f"the checkpoints {self.root} are no longer this process's: {self._lost}")

    def take(self) -> None:
        """Blocks while another process may have the lease; raises SettingsError when it renews it."""
        note = self._lease()
        if note:
            log.info("waiting for another process's lease to expire", checkpoints=self.root, holder=note["process"])
        until = self.clock() + ABANDONED_S
        while note and self.clock() < until:
            self.pause(LEASE_POLL_S)
            now = self._lease()
            if now and now != note:
                raise _in_use(self.root, f"another process, {now['process']},")
            # None is a note that is just being replaced.
            note = note if now is None else now
        self._write()

    def renew(self) -> None:
        """Renews the note, or finds that the lease is lost."""
        try:
            note = self.read(LEASE_NOTE) or {}
            if note.get("token") == self._token:
                self._write()
            else:
                self._lost = f"{note.get('process', 'another process')} has taken them"
        except CheckpointsUnusableError as error:
            if self.clock() - self._renewed >= ABANDONED_S:
                self._lost = str(error)

    def release(self) -> None:
        """Empties the note, so that the next process need not wait."""
        try:
            if (self.read(LEASE_NOTE) or {}).get("token") == self._token:
                self.replace(LEASE_NOTE, {})
        except CheckpointsUnusableError as error:
            log.warning("cannot release the lease", reason=str(error))

    def _lease(self) -> dict[str, Any] | None:
        """Returns the note, an empty one of a lease that was released. Raises NoteDamagedError, with what to do."""
        remedy = f"delete it once no process works on {self.root}"
        try:
            note = self.read(LEASE_NOTE)
        except NoteDamagedError as error:
            raise NoteDamagedError(f"{error}: {remedy}") from error
        if note and "process" not in note:
            raise NoteDamagedError(f"{self.location(LEASE_NOTE)} names no process: {remedy}")
        return note

    def _keep(self, ended: Event) -> None:
        while not self._lost and not ended.wait(RENEW_S):
            self.renew()

    def _write(self) -> None:
        started = self.clock()
        process = f"{socket.gethostname()}, process {os.getpid()}"
        self.replace(LEASE_NOTE, {"process": process, "token": self._token, "renewals": self._renewals})
        self._renewals += 1
        self._renewed = started


def open_checkpoints(location: str, spark: Callable[[], SparkSession]) -> Checkpoints:
    """Returns the checkpoints at a directory, or at a URI, for which Spark is needed.

    Raises CheckpointsUnusableError.
    """
    if not _URI.match(location):
        return Checkpoints(str(Path(location).absolute()), LocalFiles())
    uri, session = location.rstrip("/"), spark()
    with _usable(uri):
        return LeasedCheckpoints(uri, CheckpointFiles(session, uri))


def _in_use(root: str, process: str) -> SettingsError:
    return SettingsError(f"STREAM_PROCESSOR_CHECKPOINTS: {process} works on {root}; stop it or choose another")


def sized(checkpoints: Checkpoints, plan: QueryPlan) -> QueryPlan:
    """Returns the plan with the parts that the state of its checkpoint has, if it has one.

    Raises CheckpointsUnusableError, NoteDamagedError among them.
    """
    return _sized(plan, _known(checkpoints, f"{plan.name}.json"), checkpoints.exists(plan.name))


def _sized(plan: QueryPlan, note: Mapping[str, Any], exists: bool) -> QueryPlan:
    parts = note.get(PARALLELISM)
    return plan.going_on(parts) if exists and parts else plan


def claim(
    checkpoints: Checkpoints,
    plan: QueryPlan,
    highest_epoch: Callable[[str, bool], int],
) -> QueryPlan:
    """Records the meaning of the query's checkpoint, and returns the plan with its epoch and the parts of its state.

    The epoch of a new checkpoint is one above all that the topic has.

    Raises PipelineChangedError:

    - when keys and rows of another meaning stand in the state and on the topic: nothing would ever retract them
    - when a topic was recreated, and so has another id: it has other offsets, or lacks the records that the state holds
    - when the offset is the order and there are new partitions: there is no order between them and the earlier ones
    - when the topic has sums of a later checkpoint, which would hide all that this one writes

    Also raises CheckpointsUnusableError, NoteDamagedError among them, and the errors of `highest_epoch` (of Topics).
    """
    note = f"{plan.name}.json"
    before, exists = _known(checkpoints, note), checkpoints.exists(plan.name)
    plan = _sized(plan, before, exists)
    meaning = _meaning(plan)
    epoch = int(before.pop("epoch", 0))
    written = highest_epoch(plan.sink_topic, exists) if plan.counts else 0
    if not exists:
        epoch = max(epoch, written) + 1
    elif before and _said(before) != _said(meaning):
        had, has = before.get(PARTITIONS), meaning.get(PARTITIONS)
        if had and has and had != has:
            more = f"{', '.join(plan.by_offset)} has {has} partitions and had {had}"
            raise PipelineChangedError(f"{plan.pipeline.file}: {more}: {GROWN}")
        changed = [
            NAMES.get(key, key) for key in sorted(before.keys() | meaning.keys()) if before.get(key) != meaning.get(key)
        ]
        raise PipelineChangedError(
            f"{plan.pipeline.file}: {', '.join(changed)}: changed since the checkpoint "
            f"{checkpoints.location(plan.name)} was made: give the pipeline a new name and sink, or delete the "
            f"checkpoint and the records on {plan.sink_topic}"
        )
    elif written > epoch:
        raise PipelineChangedError(
            f"{plan.pipeline.file}: {plan.sink_topic} has sums of a later checkpoint (epoch {written}) than "
            f"{checkpoints.location(plan.name)} (epoch {epoch}), which readers keep: delete the checkpoint"
        )
    checkpoints.replace(note, {"epoch": epoch, **meaning})
    return replace(plan, epoch=epoch)


def _known(checkpoints: Checkpoints, note: str) -> dict[str, Any]:
    try:
        return checkpoints.read(note) or {}
    except NoteDamagedError as error:
        remedy = "put it back from a backup, or make a new generation of the keyed topic (docs/runbook.md)"
        raise NoteDamagedError(f"{error}: it says what the checkpoint means, {remedy}") from error


def _said(meaning: Mapping[str, object]) -> dict[str, object]:
    """Removes keys that the file does not have: a checkpoint of an older release does not know them."""
    return {key: value for key, value in meaning.items() if value is not None}


def _meaning(plan: QueryPlan) -> dict[str, object]:
    first, *others = plan.source_topics
    source = {"source.topic": first, "source.topic.id": plan.topics[first].id}
    if others:
        source["table_join.topic.id"] = plan.topics[others[0]].id
    written = plan.pipeline.definition.model_dump(mode="json", by_alias=True, exclude=MAY_CHANGE)
    sections = {key: written.pop(key) for key in ("source", "sink")}
    # Raised when the database was restored: later changes are newer than all that the state holds.
    sections["source"].pop("epoch")
    if sections["source"]["starting_offsets"] == EARLIEST:
        for key in ("starting_offsets", "partial"):
            sections["source"].pop(key)
    # Settings of a topic's creation, except its partitions (below), and of the producer.
    for key in ("partitions", "config", "producer"):
        sections["sink"].pop(key)
    return {
        **written,
        **{f"{section}.{key}": value for section, keys in sections.items() for key, value in keys.items()},
        **source,
        "sink.topic.id": plan.topics[plan.sink_topic].id,
        "sink.partitions": plan.sink_partitions if plan.shuffles else 0,
        PARALLELISM: plan.parallelism if plan.shuffles else None,
        "state": STATE_VERSION,
        **({PARTITIONS: plan.source_partitions} if plan.by_offset else {}),
        **plan.pipeline.meaning(),
    }
