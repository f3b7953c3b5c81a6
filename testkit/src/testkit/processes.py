"""Starts child processes that end with the program that started them, and ends them with all that they started.

A program that uses gRPC too imports this module first.
"""

import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import psutil

PR_SET_PDEATHSIG = 1
ORPHAN_GRACE_S = 1.0
TAIL_BYTES = 16_384

Popen = subprocess.Popen[bytes]

# gRPC would start its threads anew in each child, on descriptors that are closed there, and now and then the child ends
# before it is the program (grpc/grpc issue 43055). gRPC reads this when it is imported; no child of ours needs it.
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")


def start(command: Sequence[str], log_file: Path, environment: Mapping[str, str] | None = None) -> Popen:
    """Starts `command` in a session and process group of its own, appending its output to `log_file`.

    On Linux the kernel kills the child when the calling thread ends, however it ends: call it from a thread that
    lives as long as the child should. Raises FileNotFoundError when the program does not exist.
    """
    return _start(command, log_file, environment, _die_with(os.getpid()))


def start_detached(command: Sequence[str], log_file: Path, environment: Mapping[str, str]) -> Popen:
    """Starts `command` as `start` does, but to outlive the program that started it."""
    return _start(command, log_file, environment, None)


def stop(pid: int, grace_s: float = 10.0, by: signal.Signals = signal.SIGTERM) -> None:
    """Sends a signal to the process, and SIGKILL if it is still there after `grace_s`.

    Kills its child processes, too, if they have not ended a second later.
    """
    try:
        process = psutil.Process(pid)
        children = process.children(recursive=True)
        process.send_signal(by)
    except psutil.NoSuchProcess:
        return
    _, alive = psutil.wait_procs([process], timeout=grace_s)
    kill_all(alive)
    _, alive = psutil.wait_procs(children, timeout=ORPHAN_GRACE_S)
    kill_all(alive)


def kill_family(pid: int) -> None:
    """Kills the process with everything it started, at once, and waits until they are gone."""
    kill_all(family(pid))


def kill_group(pid: int) -> None:
    """Kills the remaining processes of the group that the ended process `pid` led."""
    try:
        os.killpg(pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return


def kill_all(processes: Sequence[psutil.Process]) -> None:
    """Kills the processes and waits until they are gone; those already gone are fine."""
    for process in processes:
        try:
            process.kill()
        except psutil.NoSuchProcess:
            continue
    psutil.wait_procs(processes, timeout=10)


def family(pid: int) -> list[psutil.Process]:
    """Returns the process and everything it started that still runs; nothing when the process has gone."""
    try:
        process = psutil.Process(pid)
        return [process, *process.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def tail(log_file: Path, lines: int = 15) -> str:
    """Returns the last lines of the log; a note instead when there are none."""
    try:
        with log_file.open("rb") as file:
            file.seek(max(0, log_file.stat().st_size - TAIL_BYTES))
            text = file.read().decode(errors="replace")
    except FileNotFoundError:
        text = ""
    return "\n".join(text.splitlines()[-lines:]) or f"({log_file} is empty)"


def _start(
    command: Sequence[str], log_file: Path, environment: Mapping[str, str] | None, preexec: Callable[[], None] | None
) -> Popen:
    log_file.parent.mkdir(parents=True, exist_ok=True)
    with log_file.open("ab") as output:
        return subprocess.Popen(
            list(command),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**os.environ, **(environment or {})},
            start_new_session=True,
            preexec_fn=preexec,  # noqa: PLW1509  the function makes two system calls and nothing else
        )


def _die_with(parent: int) -> Callable[[], None] | None:
    if sys.platform != "linux":
        return None
    prctl = ctypes.CDLL(None, use_errno=True).prctl

    def bind_to_parent() -> None:
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # the parent ended before the kernel knew
            os.kill(os.getpid(), signal.SIGKILL)

    return bind_to_parent
