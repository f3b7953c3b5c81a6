"""Keeps two processes from working on the same checkpoints where no lock of the file system does."""

import os
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread
from uuid import uuid4

import structlog

from stream_processor.errors import CheckpointsTakenError, CheckpointsUnusableError, SettingsError
from stream_processor.operation.notes import Notes

log = structlog.get_logger()

NOTE = "lease.json"
RENEW_S = 3.0
ABANDONED_S = 15.0
"""A lease that nobody has renewed for so long is free. Several times RENEW_S, because a file system may be slow."""
LOOK_S = 0.5


class Lease:
    """A note that names the process and is renewed while it lives; one that stands still is abandoned.

    Whoever finds the note of another watches it by its own clock, so the clocks of two machines need not agree. What
    the note cannot keep off is a process that stood still for ABANDONED_S and wakes: it ends at its next renewal, and
    until then Spark refuses the second writer of a batch.
    """

    def __init__(
        self,
        notes: Notes,
        place: str,
        clock: Callable[[], float] = time.monotonic,
        pause: Callable[[float], object] = time.sleep,
    ) -> None:
        self._notes = notes
        self._place = place
        self._clock = clock
        self._pause = pause
        self._token = uuid4().hex
        self._renewals = 0
        self._renewed = 0.0
        self._lost = ""

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Takes the lease, renews it from a thread of its own, and gives it back.

        Waits for ABANDONED_S if a process has left its note behind. Raises SettingsError when another renews it.
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
            self.give_back()

    def check(self) -> None:
        """Raises CheckpointsTakenError when another process has the lease, or may have it."""
        if self._lost:
            raise CheckpointsTakenError(f"the checkpoints {self._place} are no longer this process's: {self._lost}")

    def take(self) -> None:
        """Blocks until the lease is this process's. Raises SettingsError when another renews it."""
        found = self._notes.read(NOTE)
        if found:
            log.info("waiting until a lease is abandoned", checkpoints=self._place, holder=found["process"])
        until = self._clock() + ABANDONED_S
        while found and self._clock() < until:
            self._pause(LOOK_S)
            now = self._notes.read(NOTE)
            if now and now != found:
                raise SettingsError(
                    f"STREAM_PROCESSOR_CHECKPOINTS: another process, {now['process']}, works on {self._place}; "
                    "stop it or choose another"
                )
            # None is a note that is just being replaced.
            found = found if now is None else now
        self._write()

    def renew(self) -> None:
        """Says once more that this process lives, or finds that the lease is lost."""
        try:
            found = self._notes.read(NOTE) or {}
            if found.get("token") == self._token:
                self._write()
            else:
                self._lost = f"{found.get('process', 'another process')} has taken them"
        except CheckpointsUnusableError as error:
            if self._clock() - self._renewed >= ABANDONED_S:
                self._lost = str(error)

    def give_back(self) -> None:
        """Empties the note, so that the next process need not wait."""
        try:
            if (self._notes.read(NOTE) or {}).get("token") == self._token:
                self._notes.replace(NOTE, {})
        except CheckpointsUnusableError as error:
            log.warning("the lease is not given back", reason=str(error))

    def _keep(self, ended: Event) -> None:
        while not self._lost and not ended.wait(RENEW_S):
            self.renew()

    def _write(self) -> None:
        started = self._clock()
        process = f"{socket.gethostname()}, process {os.getpid()}"
        self._notes.replace(NOTE, {"process": process, "token": self._token, "renewals": self._renewals})
        self._renewals += 1
        self._renewed = started
