"""Starts a stack, in this process or in the background; holds on to one that runs; and ends it."""

import asyncio
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from local_stack import LocalStackError
from local_stack.settings import Settings
from local_stack.specs import Plan
from local_stack.stack_directory import SETTLED, Entry, Ledger, StackDirectory
from local_stack.stack_file import Stack, read_stack
from local_stack.supervisor import Supervisor
from testkit import processes

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
THREADS = 16  # as many processes may be probed, prepared or stopped at once
POLL_S = 0.05
STOP_MARGIN_S = 10.0

Report = Callable[[str], None]
Start = Callable[[Sequence[str], Path, Mapping[str, str]], processes.Popen]


def run_stack(settings: Settings, plan: Plan) -> None:
    """Runs the stack in the main thread until a signal has ended it; the ledger, too, has the cause of a failure."""
    directory = settings.files
    directory.create()
    with directory.locked():
        directory.ledger().end_leftovers()
        directory.begin_run()
        try:
            asyncio.run(_supervise(settings.with_ports(), plan))
        except LocalStackError as error:
            failed = {"failure": str(error), "supervisor": os.getpid()}
            directory.write_ledger(directory.ledger().model_copy(update=failed))
            raise
        directory.forget_run()


def start_stack(settings: Settings, start: Start, report: Report) -> processes.Popen:
    """Starts a supervisor with `start`, waits until its stack is ready, and reports each process that becomes ready.

    `start` is one of testkit.processes: `start` ties the stack to this process, `start_detached` does not. Raises
    LocalStackError with the addresses of a stack that runs already, or with the cause of a failure; the processes of a
    failed start have ended by then.
    """
    directory = settings.files
    directory.create()
    if directory.supervisor_pid() is not None:
        address = "it is still starting"
        if directory.stack_file.exists():
            gateway = read_stack(directory.stack_file).gateway
            address = f"gateway {gateway.https} and {gateway.http}"
        raise LocalStackError(f"a stack already runs in {directory.root} ({address}): `make down` ends it")
    directory.stack_file.unlink(missing_ok=True)
    directory.rotate_log("supervisor")
    command = [sys.executable, "-m", "local_stack", "run"]
    supervisor = start(command, directory.log_file("supervisor"), settings.as_environment())
    try:
        _wait_ready(directory, supervisor, report)
    except BaseException:
        if directory.supervisor_pid() in (None, supervisor.pid):
            stop_stack(settings)
        supervisor.wait()
        raise
    return supervisor


def stop_stack(settings: Settings) -> bool:
    """Ends all processes of the stack, also those that a killed supervisor left. Returns False when there were none."""
    directory = settings.files
    supervisor = directory.supervisor_pid()
    if supervisor is not None:
        processes.stop(supervisor, 2 * settings.stop_grace_s + STOP_MARGIN_S)
    ended = directory.ledger().end_leftovers()
    directory.forget_run()
    return supervisor is not None or ended > 0


@contextmanager
def running_stack(
    settings: Settings, report: Report = lambda _: None, start: Start = processes.start
) -> Iterator["RunningStack"]:
    """Starts a new stack, and ends it with the block or this process. Must be called in the main thread."""
    supervisor = start_stack(settings, start, report)
    try:
        yield RunningStack(settings.files)
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
        """Returns the state of a process. Raises LocalStackError when the stack has ended or has no such process."""
        try:
            return self.directory.ledger().processes[name]
        except KeyError:
            raise LocalStackError(f"no process {name} in the stack in {self.directory.root}") from None

    def kill(self, name: str, *, hold: bool = False) -> None:
        """Kills a process and all it started, as `kill -9` does, and returns when the supervisor has noticed.

        With `hold` it stays down until `start`; else the supervisor starts it again: wait for that by `wait_ready`.
        """
        pid = self.entry(name).pid
        if pid is None:
            raise LocalStackError(f"{name} does not run")
        processes.kill_family(pid)
        if hold:
            self.stop(name)
        self._wait(lambda: self.entry(name).pid != pid, f"the end of {name} was not noticed", 10)

    def stop(self, name: str) -> None:
        """Ends a process gracefully and keeps it down until `start`; returns when it has ended."""
        (self.directory.held / name).touch()
        self._wait(lambda: self.entry(name).state == "held", f"{name} did not end", 60)

    def start(self, name: str) -> None:
        """Lets a process run again that `stop` ended: wait for it by `wait_ready`."""
        (self.directory.held / name).unlink(missing_ok=True)
        self._wait(lambda: self.entry(name).state != "held", f"{name} was not started", 10)

    def wait_ready(self, name: str, timeout_s: float = 60) -> None:
        """Returns when the process is ready, or has done its work. Raises LocalStackError after `timeout_s`."""
        self._wait(lambda: self.entry(name).state in SETTLED, f"{name} is not ready", timeout_s)

    def wait_announced(self, timeout_s: float) -> None:
        """Returns when the stack file is there, which is when all processes have become ready."""
        self._wait(self.directory.stack_file.exists, "the stack is not ready", timeout_s)

    def _wait(self, condition: Callable[[], bool], otherwise: str, timeout_s: float) -> None:
        deadline = time.monotonic() + timeout_s
        while not condition():
            if self.directory.supervisor_pid() is None:
                raise LocalStackError(f"{otherwise}, because the stack has ended: see `local-stack status`")
            if time.monotonic() > deadline:
                raise LocalStackError(f"{otherwise} within {timeout_s:g} s: see {self.directory.logs}")
            time.sleep(POLL_S)


async def _supervise(settings: Settings, plan: Plan) -> None:
    loop, stop = asyncio.get_running_loop(), asyncio.Event()
    loop.set_default_executor(ThreadPoolExecutor(THREADS))
    for number in STOP_SIGNALS:
        loop.add_signal_handler(number, stop.set)
    specs, users = plan(settings)
    await Supervisor(specs, settings, users).run(stop)


def _wait_ready(directory: StackDirectory, supervisor: processes.Popen, report: Report) -> None:
    reported: set[str] = set()
    began = time.monotonic()
    while True:
        ready, ended, ledger = directory.stack_file.exists(), supervisor.poll() is not None, directory.ledger()
        if ledger.supervisor != supervisor.pid:
            ledger = Ledger()  # the present one is of the run before
        for name, entry in ledger.processes.items():
            if entry.state in SETTLED and name not in reported:
                reported.add(name)
                report(f"{time.monotonic() - began:5.1f} s  {name} is {entry.state}")
        if ready:
            return
        if ended:
            raise LocalStackError(ledger.failure or processes.tail(directory.log_file("supervisor")))
        time.sleep(POLL_S)
