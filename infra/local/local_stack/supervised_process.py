"""Keeps one process running: start, ask whether it is ready, start again when it ends."""

import asyncio
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import psutil
import structlog

from local_stack import child_process
from local_stack.errors import NotInstalledError, NotReadyError
from local_stack.ledger import Entry, State
from local_stack.log_tail import tail
from local_stack.process_spec import ProcessSpec
from local_stack.restart_policy import RestartPolicy

POLL_S = 0.05
PROBE_STARTING_S = 0.2
PROBE_READY_S = 2.0

log = structlog.get_logger()


class SupervisedProcess:
    """One process of a spec. `entry` tells its state; `changed` is called after each change of it.

    `run` must be awaited in the main thread, because children end with the thread that started them.
    """

    def __init__(
        self,
        spec: ProcessSpec,
        log_file: Path,
        hold_file: Path,
        policy: RestartPolicy,
        clock: Callable[[], float],
        changed: Callable[[], None],
    ) -> None:
        self.spec = spec
        self.entry = Entry(log=log_file)
        self.was_ready = asyncio.Event()
        self._hold_file = hold_file
        self._policy = policy
        self._clock = clock
        self._changed = changed
        self._began = clock()
        self._process: subprocess.Popen[bytes] | None = None

    async def run(self, after: list[asyncio.Event], environment: Mapping[str, str], stop_grace_s: float) -> None:
        """Runs the process until it is done; for ever when it may not end.

        Raises NotReadyError with the end of its log when it keeps ending, NotInstalledError when it does not exist.
        """
        for event in after:
            await event.wait()
        self._began = self._clock()
        if self.spec.prepare:
            self._set(state="starting", reason="preparing")
            await asyncio.to_thread(self.spec.prepare)
        while True:
            await self._while_held()
            status = await self._live({**self.spec.environment, **environment}, stop_grace_s)
            if status == 0 and self.spec.may_end and not self._hold_file.exists():
                self._become("done")
                return
            if not self._hold_file.exists():
                await self._pause(status)

    async def stop(self, grace_s: float) -> None:
        """Ends the process with all that it started. `run` must have been cancelled."""
        if self._process is not None and self.entry.pid is not None:
            self._set(state="stopping", reason="")
            began = self._clock()
            await asyncio.to_thread(child_process.stop, self.entry.pid, grace_s)
            self._process.wait()
            child_process.kill_group(self.entry.pid)
            log.info("process has ended", process=self.spec.name, after_s=round(self._clock() - began, 1))
        self._set(state="stopped", pid=None, created=None, reason="")

    async def _live(self, environment: Mapping[str, str], stop_grace_s: float) -> int:
        process = self._start(environment)
        watching = asyncio.create_task(self._watch())
        try:
            while process.poll() is None:
                if self._hold_file.exists():
                    await asyncio.to_thread(child_process.stop, process.pid, stop_grace_s)
                await asyncio.sleep(POLL_S)
        finally:
            watching.cancel()
        child_process.kill_group(process.pid)
        return process.returncode

    def _start(self, environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
        try:
            process = child_process.start(self.spec.command, self.entry.log, environment)
        except FileNotFoundError:
            raise NotInstalledError(f"{self.spec.command[0]} does not exist: run `make install`") from None
        try:
            created = psutil.Process(process.pid).create_time()
        except psutil.NoSuchProcess:
            created = None
        self._process = process
        self._set(state="starting", pid=process.pid, created=created, reason="started")
        return process

    async def _watch(self) -> None:
        if self.spec.probe is None:
            return
        while True:
            missing = await self.spec.probe.missing()
            if not missing:
                self._become("ready")
            elif self.entry.state == "ready":
                log.warning("process is not ready any more", process=self.spec.name, reason=missing)
                self._set(state="unready", reason=missing)
            else:
                self._set(reason=missing)
            await asyncio.sleep(PROBE_READY_S if self.entry.state == "ready" else PROBE_STARTING_S)

    async def _pause(self, status: int) -> None:
        reason = f"ended with status {status}"
        pause_s = self._policy.pause_after_end(self._clock())
        self._set(state="restarting", pid=None, created=None, reason=reason, restarts=self.entry.restarts + 1)
        if pause_s is None:
            raise NotReadyError(
                f"{self.spec.name} ended {self._policy.limit} times in {self._policy.window_s:g} s, at last with status"
                f" {status}. The end of {self.entry.log}:\n{tail(self.entry.log)}"
            )
        log.warning("process ended", process=self.spec.name, status=status, restart_in_s=pause_s)
        await asyncio.sleep(pause_s)
        self._began = self._clock()

    async def _while_held(self) -> None:
        while self._hold_file.exists():
            self._set(state="held", pid=None, created=None, reason="held down")
            await asyncio.sleep(POLL_S)

    def _become(self, state: State) -> None:
        if self.entry.state == state:
            return
        after_s = round(self._clock() - self._began, 1)
        log.info("process changed", process=self.spec.name, state=state, after_s=after_s)
        gone: dict[str, object] = {"pid": None, "created": None} if state == "done" else {}
        self._set(state=state, reason="", since_start_s=after_s, **gone)
        self.was_ready.set()

    def _set(self, **changes: object) -> None:
        entry = self.entry.model_copy(update=changes)
        if entry != self.entry:
            self.entry = entry
            self._changed()
