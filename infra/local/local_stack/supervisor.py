"""The supervisor: keeps every process of a stack running, and ends them all on a signal or when one keeps failing."""

import asyncio
import os
import secrets
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence

import structlog

from local_stack import LocalStackError
from local_stack.process_spec import ProcessSpec
from local_stack.settings import Settings
from local_stack.stack_directory import DOWN, RUN_VARIABLE, SETTLED, Entry, Ledger, State, write_private
from local_stack.stack_file import Credentials, stack_text
from testkit import processes

POLL_S = 0.05
PROBE_STARTING_S = 0.2
PROBE_READY_S = 2.0

log = structlog.get_logger()


def restart_pause_s(ends: deque[float], settings: Settings) -> float | None:
    """Returns the pause after the last of the ends, doubled for each within the window; None to give up.

    Forgets older ones.
    """
    while ends[0] <= ends[-1] - settings.restart_window_s:
        ends.popleft()
    if len(ends) >= settings.restart_limit:
        return None
    return min(settings.restart_max_s, settings.restart_first_s * 2.0 ** (len(ends) - 1))


class SupervisedProcess:
    """One process in the run `run`. `changed` follows each change of `entry`. It ends with the thread that runs it."""

    def __init__(self, spec: ProcessSpec, settings: Settings, run: str, changed: Callable[[], None]) -> None:
        self.spec = spec
        self.entry = Entry(log=settings.files.log_file(spec.name))
        self.was_ready = asyncio.Event()
        self._hold_file = settings.files.held / spec.name
        self._environment = {**spec.environment, RUN_VARIABLE: run}
        self._settings = settings
        self._ends: deque[float] = deque()
        self._changed = changed
        self._started_at = 0.0
        self._process: processes.Popen | None = None

    async def run_until_done(self, after: Sequence[asyncio.Event]) -> None:
        """Runs the process once `after` are set, until it is done. Raises LocalStackError when it keeps ending."""
        for event in after:
            await event.wait()
        while self.entry.state != "done":
            await self._run_once()

    async def stop(self) -> None:
        """Ends the process with all that it started. `run_until_done` must have been cancelled."""
        if self._process is not None and self.entry.pid is not None:
            self._set("stopping")
            began = time.monotonic()
            await self._end(self.entry.pid)
            self._process.wait()
            processes.kill_group(self.entry.pid)
            log.info("process has ended", process=self.spec.name, after_s=round(time.monotonic() - began, 1))
        self._set("stopped")

    async def _run_once(self) -> None:
        """Runs the process to its end, when nothing holds it down, and on to when it may start again."""
        while self._hold_file.exists():
            self._set("held", "held down")
            await asyncio.sleep(POLL_S)
        process = self._process = await self._start()
        probing = asyncio.create_task(self._probe())
        try:
            while process.poll() is None:
                if self._hold_file.exists():
                    await self._end(process.pid)
                await asyncio.sleep(POLL_S)
        finally:
            probing.cancel()
        processes.kill_group(process.pid)
        if self._hold_file.exists():
            return
        if process.returncode == 0 and self.spec.may_end:
            self._set("done")
        else:
            await self._pause(process.returncode)

    async def _end(self, pid: int) -> None:
        await asyncio.to_thread(processes.stop, pid, self._settings.stop_grace_s, self.spec.stops_by)

    async def _start(self) -> processes.Popen:
        self._started_at = time.monotonic()
        try:
            if self.spec.prepare:
                self._set("starting", "preparing")
                await asyncio.to_thread(self.spec.prepare)
            process = processes.start(self.spec.command, self.entry.log, self._environment)
        except FileNotFoundError as error:
            missing = f"{error.filename} does not exist: run `make install`" if error.filename else str(error)
            raise LocalStackError(missing) from None
        created = next((each.create_time() for each in processes.family(process.pid)), None)
        self._set("starting", "started", pid=process.pid, created=created)
        return process

    async def _probe(self) -> None:
        while self.spec.probe is not None:
            reason = await asyncio.to_thread(self.spec.probe)
            if reason and self.entry.state == "ready":
                log.warning("process is not ready any more", process=self.spec.name, reason=reason)
                self._set("unready", reason)
            else:
                self._set(self.entry.state if reason else "ready", reason)
            await asyncio.sleep(PROBE_READY_S if self.entry.state == "ready" else PROBE_STARTING_S)

    async def _pause(self, status: int) -> None:
        self._ends.append(time.monotonic())
        pause_s = restart_pause_s(self._ends, self._settings)
        self._set("restarting", f"ended with status {status}", restarts=self.entry.restarts + 1)
        if pause_s is None:
            raise LocalStackError(
                f"{self.spec.name} ended {self._settings.restart_limit} times in {self._settings.restart_window_s:g} s,"
                f" at last with status {status}. The end of {self.entry.log}:\n{processes.tail(self.entry.log)}"
            )
        log.warning("process ended", process=self.spec.name, status=status, restart_in_s=pause_s)
        await asyncio.sleep(pause_s)

    def _set(self, state: State, reason: str = "", **changes: object) -> None:
        if state in SETTLED and state != self.entry.state:
            changes["since_start_s"] = after_s = round(time.monotonic() - self._started_at, 1)
            log.info("process changed", process=self.spec.name, state=state, after_s=after_s)
            self.was_ready.set()
        if state in DOWN:
            changes |= {"pid": None, "created": None}
        entry = self.entry.model_copy(update={"state": state, "reason": reason, **changes})
        if entry != self.entry:
            self.entry = entry
            self._changed()


class Supervisor:
    """Runs all processes; at each change writes the stack file, once all are ready, and then the ledger."""

    def __init__(self, specs: Sequence[ProcessSpec], settings: Settings, users: Mapping[str, Credentials]) -> None:
        self._settings, self._users = settings, users
        self._run = secrets.token_hex(8)
        self._announced = False
        self._processes = {spec.name: SupervisedProcess(spec, settings, self._run, self._changed) for spec in specs}

    async def run(self, stop: asyncio.Event) -> None:
        """Keeps the stack running until `stop` is set; then all processes have ended. Raises LocalStackError."""
        every = self._processes
        runs = [each.run_until_done([every[name].was_ready for name in each.spec.after]) for each in every.values()]
        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(run) for run in (*runs, self._announce())]
                await stop.wait()
                for task in tasks:
                    task.cancel()
        except ExceptionGroup as failed:
            raise failed.exceptions[0] from None
        finally:
            self._announced = False
            self._settings.files.stack_file.unlink(missing_ok=True)
            for last in (False, True):
                await asyncio.gather(*(each.stop() for each in every.values() if each.spec.stops_last is last))

    async def _announce(self) -> None:
        began = time.monotonic()
        try:
            async with asyncio.timeout(self._settings.start_timeout_s):
                await asyncio.gather(*(process.was_ready.wait() for process in self._processes.values()))
        except TimeoutError:
            reasons = "; ".join(
                f"{name}: {process.entry.reason or process.entry.state} (log: {process.entry.log})"
                for name, process in self._processes.items()
                if not process.was_ready.is_set()
            )
            waited = f"not ready within {self._settings.start_timeout_s:g} s (LOCAL_STACK_START_TIMEOUT_S)"
            raise LocalStackError(f"{waited}: {reasons}") from None
        self._announced = True
        self._changed()
        log.info("stack is ready", after_s=round(time.monotonic() - began, 1))

    def _changed(self) -> None:
        entries = {name: process.entry for name, process in self._processes.items()}
        if self._announced:  # before the ledger: who has waited for a state there reads the file of that state
            write_private(self._settings.files.stack_file, stack_text(self._settings, self._users, entries))
        self._settings.files.write_ledger(Ledger(run=self._run, supervisor=os.getpid(), processes=entries))
