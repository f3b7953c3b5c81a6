"""The places of checkpoints: a local directory, locked by the kernel, or a path of any Hadoop file system, leased."""

import fcntl
import json
import os
import re
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Thread
from typing import Any, cast
from uuid import uuid4

import structlog
from pyspark.sql import SparkSession
from typing_extensions import override

from statecast_service.errors import SettingsError
from stream_processor.errors import CheckpointsTakenError, CheckpointsUnusableError
from stream_processor.operation.checkpoints import Checkpoints, Notes
from stream_processor.spark_internals import JVM_ERRORS, CheckpointFiles, jvm_reason

log = structlog.get_logger()

LEASE_NOTE = "lease.json"
RENEW_S = 3.0
ABANDONED_S = 15.0
"""A lease that nobody has renewed for so long is free. Several times RENEW_S, because a file system may be slow."""
LEASE_POLL_S = 0.5
_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/")


class LocalCheckpoints(Checkpoints):
    """Checkpoints in a local directory, which needs no Spark: what is wrong with it is an error before Spark starts."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    @override
    def location(self, query: str) -> str:
        return str((self._directory / query).absolute())

    @override
    def exists(self, query: str) -> bool:
        return (self._directory / query).exists()

    @override
    def read(self, name: str) -> dict[str, Any] | None:
        note = self._directory / name
        return cast(dict[str, Any], json.loads(note.read_text())) if note.exists() else None

    @override
    def replace(self, name: str, content: Mapping[str, object]) -> None:
        replacement = self._directory / f"{name}.new"
        try:
            self._directory.mkdir(parents=True, exist_ok=True)
            replacement.write_text(json.dumps(content, indent=2) + "\n")
            replacement.replace(self._directory / name)
        except OSError as error:
            raise self._unusable(error) from error

    @override
    @contextmanager
    def hold(self) -> Iterator[None]:
        # The kernel lets go of the lock however this process ends.
        try:
            self._directory.mkdir(parents=True, exist_ok=True)
            lock = (self._directory / "lock").open("w")
        except OSError as error:
            raise self._unusable(error) from error
        with lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise SettingsError(
                    f"STREAM_PROCESSOR_CHECKPOINTS: another process works on {self._directory}; "
                    "stop it or choose another"
                ) from error
            yield

    @override
    def check(self) -> None:
        """Nothing to check: the kernel gives the lock to nobody else."""

    def _unusable(self, error: OSError) -> CheckpointsUnusableError:
        return CheckpointsUnusableError(f"cannot write {self._directory}: {error.strerror}")


@dataclass
class Lease:
    """A note that names the process and is renewed while it lives; one that stands still is abandoned.

    A process that finds another's note watches it by its own clock, so the clocks of two machines need not agree. What
    the note cannot keep off is a process that stood still for ABANDONED_S and wakes: it ends at its next renewal, and
    until then Spark refuses the second writer of a batch.
    """

    notes: Notes
    location: str
    clock: Callable[[], float] = time.monotonic
    pause: Callable[[float], object] = time.sleep
    _token: str = field(default_factory=lambda: uuid4().hex, init=False)
    _renewals: int = field(default=0, init=False)
    _renewed: float = field(default=0.0, init=False)
    _lost: str = field(default="", init=False)

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Takes the lease, renews it from a thread of its own, and releases it.

        Waits for ABANDONED_S if a process has left its note. Raises SettingsError when another renews it.
        """
        self.take()
        ended = Event()
        renewer = Thread(target=self._keep, args=(ended,), name="lease", daemon=True)
        renewer.start()
        try:
            yield
        finally:
            ended.set()
            renewer.join()
            self.release()

    def check(self) -> None:
        """Raises CheckpointsTakenError when another process has the lease, or may have it."""
        if self._lost:
            raise CheckpointsTakenError(f"the checkpoints {self.location} are no longer this process's: {self._lost}")

    def take(self) -> None:
        """Blocks until the lease is this process's. Raises SettingsError when another renews it."""
        note = self.notes.read(LEASE_NOTE)
        if note:
            log.info("waiting until a lease is abandoned", checkpoints=self.location, holder=note["process"])
        until = self.clock() + ABANDONED_S
        while note and self.clock() < until:
            self.pause(LEASE_POLL_S)
            now = self.notes.read(LEASE_NOTE)
            if now and now != note:
                raise SettingsError(
                    f"STREAM_PROCESSOR_CHECKPOINTS: another process, {now['process']}, works on {self.location}; "
                    "stop it or choose another"
                )
            # None is a note that is just being replaced.
            note = note if now is None else now
        self._write()

    def renew(self) -> None:
        """Renews the note, or finds that the lease is lost."""
        try:
            note = self.notes.read(LEASE_NOTE) or {}
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
            if (self.notes.read(LEASE_NOTE) or {}).get("token") == self._token:
                self.notes.replace(LEASE_NOTE, {})
        except CheckpointsUnusableError as error:
            log.warning("the lease is not released", reason=str(error))

    def _keep(self, ended: Event) -> None:
        while not self._lost and not ended.wait(RENEW_S):
            self.renew()

    def _write(self) -> None:
        started = self.clock()
        process = f"{socket.gethostname()}, process {os.getpid()}"
        self.notes.replace(LEASE_NOTE, {"process": process, "token": self._token, "renewals": self._renewals})
        self._renewals += 1
        self._renewed = started


class HadoopCheckpoints(Checkpoints):
    """Checkpoints below a URI. A lease takes the place of the lock that such file systems do not have."""

    def __init__(self, spark: SparkSession, uri: str) -> None:
        """Makes the directory if need be. Raises CheckpointsUnusableError."""
        self._uri = uri.rstrip("/")
        self._lease = Lease(self, self._uri)
        with self._usable():
            self._files = CheckpointFiles(spark, self._uri)

    @override
    def location(self, query: str) -> str:
        return f"{self._uri}/{query}"

    @override
    def exists(self, query: str) -> bool:
        with self._usable():
            return self._files.exists(self.location(query))

    @override
    def read(self, name: str) -> dict[str, Any] | None:
        with self._usable():
            if not self._files.exists(self.location(name)):
                return None
            return cast(dict[str, Any], json.loads(self._files.read(self.location(name))))

    @override
    def replace(self, name: str, content: Mapping[str, object]) -> None:
        with self._usable():
            self._files.replace(self.location(name), json.dumps(content, indent=2).encode() + b"\n")

    @override
    def hold(self) -> AbstractContextManager[None]:
        return self._lease.hold()

    @override
    def check(self) -> None:
        self._lease.check()

    @contextmanager
    def _usable(self) -> Iterator[None]:
        """Raises CheckpointsUnusableError for whatever the JVM says, and for a JVM that has ended."""
        try:
            yield
        except JVM_ERRORS as error:
            raise CheckpointsUnusableError(f"cannot use {self._uri}: {jvm_reason(error)}") from error


def open_checkpoints(location: str, spark: Callable[[], SparkSession]) -> Checkpoints:
    """The checkpoints at a directory or a URI. Only a URI needs the session, whose JVM knows its file system.

    Raises CheckpointsUnusableError when the file system of the URI is not known or does not answer.
    """
    return HadoopCheckpoints(spark(), location) if _URI.match(location) else LocalCheckpoints(Path(location))
