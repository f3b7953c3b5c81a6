"""A whole running stack as a value, for end-to-end tests and benchmarks."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from local_stack import child_process, run_lock
from local_stack.background import Start, Told, start_stack, stop_stack
from local_stack.errors import NotReadyError, NotRunningError
from local_stack.ledger import Entry, read_ledger
from local_stack.settings import Settings
from local_stack.stack_directory import StackDirectory
from local_stack.stack_file import Stack, read_stack

POLL_S = 0.05


@contextmanager
def running_stack(
    settings: Settings, tell: Told = lambda _: None, start: Start = child_process.start
) -> Iterator["RunningStack"]:
    """Starts a stack of one's own and ends it after the block, whatever happens; it also ends with this process.

    Call it in the main thread. Give each stack a directory of its own. `tell` hears of each process that is ready.
    """
    supervisor = start_stack(settings, start, tell)
    try:
        yield RunningStack(StackDirectory(settings.directory.absolute()))
    finally:
        stop_stack(settings)
        supervisor.wait()


@dataclass(frozen=True)
class RunningStack:
    """A stack that runs in `directory`. Processes are named as in the stack file."""

    directory: StackDirectory

    @property
    def file(self) -> Stack:
        """The stack file as it is now: process ids change when processes are started again."""
        return read_stack(self.directory.stack_file)

    def entry(self, name: str) -> Entry:
        """The state of a process. Raises NotRunningError when the stack has ended or has no such process."""
        ledger = read_ledger(self.directory.ledger)
        if ledger is None or name not in ledger.processes:
            raise NotRunningError(f"no process {name} in the stack in {self.directory.root}")
        return ledger.processes[name]

    def kill(self, name: str) -> None:
        """Kills a process and all it started, as `kill -9` does, and returns when the supervisor has seen it.

        The supervisor starts it again: wait for that by `wait_ready`.
        """
        pid = self._kill(name)
        self._wait(lambda: self.entry(name).pid != pid, f"the end of {name} was not seen", 10)

    def kill_and_hold(self, name: str) -> None:
        """Kills a process as `kill` does, and keeps it down until `start`."""
        self._kill(name)
        self.stop(name)

    def stop(self, name: str) -> None:
        """Ends a process gracefully and keeps it down until `start`; returns when it has ended."""
        (self.directory.held / name).touch()
        self._wait(lambda: self.entry(name).state == "held", f"{name} did not end", 60)

    def start(self, name: str) -> None:
        """Lets a process run again that `stop` ended: wait for it by `wait_ready`."""
        (self.directory.held / name).unlink(missing_ok=True)
        self._wait(lambda: self.entry(name).state != "held", f"{name} was not started", 10)

    def wait_ready(self, name: str, timeout_s: float = 60) -> None:
        """Returns when the process is ready, or has done its work. Raises NotReadyError after `timeout_s`."""
        self._wait(lambda: self.entry(name).state in ("ready", "done"), f"{name} is not ready", timeout_s)

    def wait_announced(self, timeout_s: float) -> None:
        """Returns when the stack file is there, which is when all processes have become ready."""
        self._wait(self.directory.stack_file.exists, "the stack is not ready", timeout_s)

    def _kill(self, name: str) -> int:
        pid = self.entry(name).pid
        if pid is None:
            raise NotRunningError(f"{name} does not run")
        child_process.kill_family(pid)
        return pid

    def _wait(self, reached: Callable[[], bool], otherwise: str, timeout_s: float) -> None:
        deadline = time.monotonic() + timeout_s
        while not reached():
            if run_lock.holder(self.directory.lock) is None:
                raise NotReadyError(f"{otherwise}, because the stack has ended: see `local-stack status`")
            if time.monotonic() > deadline:
                raise NotReadyError(f"{otherwise} within {timeout_s:g} s: see {self.directory.root / 'logs'}")
            time.sleep(POLL_S)
