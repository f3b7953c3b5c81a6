"""Starts a stack in the background, tells how far it is, and ends it again."""

import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from local_stack import child_process, run_lock
from local_stack.errors import AlreadyRunningError, NotReadyError
from local_stack.ledger import Ledger, read_ledger
from local_stack.leftovers import end_leftovers
from local_stack.log_tail import tail
from local_stack.settings import Settings
from local_stack.stack_directory import StackDirectory
from local_stack.stack_file import read_stack

POLL_S = 0.1
STOP_MARGIN_S = 10.0

Told = Callable[[str], None]
Start = Callable[[Sequence[str], Path, Mapping[str, str]], subprocess.Popen[bytes]]


def start_stack(settings: Settings, start: Start, tell: Told) -> subprocess.Popen[bytes]:
    """Starts a supervisor by `start` and waits until its stack is ready, telling each process that becomes so.

    `start` is one of child_process: `start` ties the stack to this process, `start_detached` does not. Raises
    AlreadyRunningError with the addresses, or NotReadyError with the reason; what it started has ended then.
    """
    directory = StackDirectory(settings.directory.absolute())
    directory.create()
    refuse_second(directory)
    directory.stack_file.unlink(missing_ok=True)
    directory.put_log_aside("supervisor")
    command = [sys.executable, "-m", "local_stack", "run"]
    supervisor = start(command, directory.log("supervisor"), settings.as_environment())
    try:
        _wait_ready(directory, supervisor, tell)
    except BaseException:
        if run_lock.holder(directory.lock) in (None, supervisor.pid):
            stop_stack(settings)
        supervisor.wait()
        raise
    return supervisor


def refuse_second(directory: StackDirectory) -> None:
    """Raises AlreadyRunningError, with the addresses once they are known, when a stack runs in the directory."""
    if run_lock.holder(directory.lock) is None:
        return
    where = "it is still starting"
    if directory.stack_file.exists():
        gateway = read_stack(directory.stack_file).gateway
        where = f"gateway {gateway.https} and {gateway.http}"
    raise AlreadyRunningError(f"a stack already runs in {directory.root} ({where}): `make down` ends it")


def stop_stack(settings: Settings) -> bool:
    """Ends the stack with everything it started, also what a killed supervisor left. False when there was nothing."""
    directory = StackDirectory(settings.directory.absolute())
    supervisor = run_lock.holder(directory.lock)
    if supervisor is not None:
        child_process.stop(supervisor, 2 * settings.stop_grace_s + STOP_MARGIN_S)
    left = read_ledger(directory.ledger)
    ended = end_leftovers(left) if left else 0
    directory.forget_run()
    return supervisor is not None or ended > 0


def _wait_ready(directory: StackDirectory, supervisor: subprocess.Popen[bytes], tell: Told) -> None:
    told: set[str] = set()
    began = time.monotonic()
    while True:
        ready, ended = directory.stack_file.exists(), supervisor.poll() is not None
        ledger = read_ledger(directory.ledger)
        if ledger and ledger.supervisor != supervisor.pid:
            ledger = None
        _tell_ready(ledger, told, tell, time.monotonic() - began)
        if ready:
            return
        if ended:
            raise NotReadyError((ledger and ledger.failure) or tail(directory.log("supervisor")))
        time.sleep(POLL_S)


def _tell_ready(ledger: Ledger | None, told: set[str], tell: Told, after_s: float) -> None:
    for name, entry in (ledger.processes if ledger else {}).items():
        if entry.state in ("ready", "done") and name not in told:
            told.add(name)
            tell(f"{after_s:5.1f} s  {name} is {entry.state}")
