"""Who runs it: keeps every process of a stack running, and ends all of them when told to or when one keeps failing."""

import asyncio
import os
import secrets
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import structlog

from local_stack import NotInstalledError, NotReadyError
from local_stack.settings import Settings
from local_stack.specs import ProcessSpec, StackText
from local_stack.stack_directory import RUN_VARIABLE, Entry, Ledger, StackDirectory, State, write_private
from testkit import processes

POLL_S = 0.05
PROBE_STARTING_S = 0.2
PROBE_READY_S = 2.0

log = structlog.get_logger()


@dataclass
class RestartPolicy:
    """Doubles the pause from `first_s` up to `max_s`; gives up at `limit` ends within `window_s` seconds."""

    first_s: float
    max_s: float
    limit: int
    window_s: float
    _ends: deque[float] = field(default_factory=deque)

    def pause_after_end(self, now: float) -> float | None:
        """Counts an end at `now` (seconds) and returns the pause before the next start; None to give up."""
        self._ends.append(now)
        while self._ends[0] <= now - self.window_s:
            self._ends.popleft()
        if len(self._ends) >= self.limit:
            return None
        return float(min(self.max_s, self.first_s * 2 ** (len(self._ends) - 1)))


class SupervisedProcess:
    """One process of a spec, in the stack's run that is named `run`. `changed` is called after each change of `entry`.

    `run_until_done` must be awaited in the main thread, because children end with the thread that started them.
    """

    def __init__(
        self, spec: ProcessSpec, directory: StackDirectory, settings: Settings, run: str, changed: Callable[[], None]
    ) -> None:
        self.spec = spec
        self.entry = Entry(log=directory.log_file(spec.name))
        self.was_ready = asyncio.Event()
        self._hold_file = directory.held / spec.name
        self._environment = {**spec.environment, RUN_VARIABLE: run}
        self._stop_grace_s = settings.stop_grace_s
        self._policy = RestartPolicy(
            settings.restart_first_s, settings.restart_max_s, settings.restart_limit, settings.restart_window_s
        )
        self._changed = changed
        self._started_at = time.monotonic()
        self._process: processes.Popen | None = None

    async def run_until_done(self, after: Sequence[asyncio.Event]) -> None:
        """Runs the process once `after` are set, until it is done; for ever when it may not end.

        Raises NotReadyError with the end of its log when it keeps ending, NotInstalledError when it does not exist.
        """
        for event in after:
            await event.wait()
        self._started_at = time.monotonic()
        if self.spec.prepare:
            self._set(state="starting", reason="preparing")
            with _must_be_installed():
                await asyncio.to_thread(self.spec.prepare)
        while not await self._run_once():
            pass

    async def stop(self) -> None:
        """Ends the process with all that it started. `run_until_done` must have been cancelled."""
        if self._process is not None and self.entry.pid is not None:
            self._set(state="stopping", reason="")
            began = time.monotonic()
            await asyncio.to_thread(processes.stop, self.entry.pid, self._stop_grace_s)
            self._process.wait()
            processes.kill_group(self.entry.pid)
            log.info("process has ended", process=self.spec.name, after_s=round(time.monotonic() - began, 1))
        self._set(state="stopped", pid=None, created=None, reason="")

    async def _run_once(self) -> bool:
        """Runs the process to its end, when nothing holds it down, and returns whether it is done."""
        while self._hold_file.exists():
            self._set(state="held", pid=None, created=None, reason="held down")
            await asyncio.sleep(POLL_S)
        with _must_be_installed():
            process = self._process = processes.start(self.spec.command, self.entry.log, self._environment)
        members = processes.family(process.pid)
        created = members[0].create_time() if members else None
        self._set(state="starting", pid=process.pid, created=created, reason="started")
        probing = asyncio.create_task(self._probe())
        try:
            while process.poll() is None:
                if self._hold_file.exists():
                    await asyncio.to_thread(processes.stop, process.pid, self._stop_grace_s)
                await asyncio.sleep(POLL_S)
        finally:
            probing.cancel()
        processes.kill_group(process.pid)
        if self._hold_file.exists():
            return False
        if process.returncode == 0 and self.spec.may_end:
            self._set(pid=None, created=None)
            self._become("done")
            return True
        await self._pause(process.returncode)
        return False

    async def _probe(self) -> None:
        while self.spec.probe is not None:
            reason = await asyncio.to_thread(self.spec.probe)
            if not reason:
                self._become("ready")
            elif self.entry.state == "ready":
                log.warning("process is not ready any more", process=self.spec.name, reason=reason)
                self._set(state="unready", reason=reason)
            else:
                self._set(reason=reason)
            await asyncio.sleep(PROBE_READY_S if self.entry.state == "ready" else PROBE_STARTING_S)

    async def _pause(self, status: int) -> None:
        reason = f"ended with status {status}"
        pause_s = self._policy.pause_after_end(time.monotonic())
        self._set(state="restarting", pid=None, created=None, reason=reason, restarts=self.entry.restarts + 1)
        if pause_s is None:
            raise NotReadyError(
                f"{self.spec.name} ended {self._policy.limit} times in {self._policy.window_s:g} s, at last with status"
                f" {status}. The end of {self.entry.log}:\n{processes.tail(self.entry.log)}"
            )
        log.warning("process ended", process=self.spec.name, status=status, restart_in_s=pause_s)
        await asyncio.sleep(pause_s)
        self._started_at = time.monotonic()

    def _become(self, state: State) -> None:
        if self.entry.state == state:
            return
        after_s = round(time.monotonic() - self._started_at, 1)
        log.info("process changed", process=self.spec.name, state=state, after_s=after_s)
        self._set(state=state, reason="", since_start_s=after_s)
        self.was_ready.set()

    def _set(self, **changes: object) -> None:
        entry = self.entry.model_copy(update=changes)
        if entry != self.entry:
            self.entry = entry
            self._changed()


class Supervisor:
    """Starts the processes as their dependencies allow and restarts those that end.

    It writes the ledger at each change, and the stack file once all are ready and at each change from then on.
    """

    def __init__(
        self, specs: Sequence[ProcessSpec], directory: StackDirectory, settings: Settings, stack_text: StackText
    ) -> None:
        self._directory, self._settings, self._stack_text = directory, settings, stack_text
        self._run = secrets.token_hex(8)
        self._announced = False
        self._processes = [SupervisedProcess(spec, directory, settings, self._run, self._changed) for spec in specs]

    async def run(self, stop: asyncio.Event) -> None:
        """Keeps the stack until `stop` is set, and returns when everything has ended.

        Raises LocalStackError when a process cannot be started, keeps ending, or is not ready in time; everything
        has ended then too.
        """
        was_ready = {process.spec.name: process.was_ready for process in self._processes}
        runs = [process.run_until_done([was_ready[name] for name in process.spec.after]) for process in self._processes]
        tasks = [asyncio.create_task(run) for run in (*runs, self._announce())]
        keeping: asyncio.Future[list[None]] = asyncio.gather(*tasks)
        stopping = asyncio.create_task(stop.wait())
        ends: list[asyncio.Future[Any]] = [keeping, stopping]
        try:
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            if keeping.done():
                keeping.result()
        finally:
            for task in (stopping, *tasks):
                task.cancel()
            await asyncio.gather(stopping, *tasks, keeping, return_exceptions=True)
            await self._stop()

    async def _announce(self) -> None:
        began = time.monotonic()
        try:
            async with asyncio.timeout(self._settings.start_timeout_s):
                await asyncio.gather(*(process.was_ready.wait() for process in self._processes))
        except TimeoutError:
            reasons = "; ".join(
                f"{process.spec.name}: {process.entry.reason or process.entry.state} (log: {process.entry.log})"
                for process in self._processes
                if not process.was_ready.is_set()
            )
            raise NotReadyError(f"not ready within {self._settings.start_timeout_s:g} s: {reasons}") from None
        self._announced = True
        self._changed()
        log.info("stack is ready", after_s=round(time.monotonic() - began, 1))

    async def _stop(self) -> None:
        self._announced = False
        self._directory.stack_file.unlink(missing_ok=True)
        for last in (False, True):
            await asyncio.gather(*(process.stop() for process in self._processes if process.spec.stops_last is last))

    def _changed(self) -> None:
        entries = {process.spec.name: process.entry for process in self._processes}
        self._directory.write_ledger(Ledger(run=self._run, supervisor=os.getpid(), processes=entries))
        if self._announced:
            write_private(self._directory.stack_file, self._stack_text(entries))


@contextmanager
def _must_be_installed() -> Iterator[None]:
    try:
        yield
    except FileNotFoundError as error:
        missing = f"{error.filename} does not exist: run `make install`" if error.filename else str(error)
        raise NotInstalledError(missing) from None
