"""All processes of a stack."""

import asyncio
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import psutil
import pytest

from local_stack.errors import NotReadyError
from local_stack.ledger import Ledger, read_ledger
from local_stack.process_spec import ProcessSpec
from local_stack.settings import Settings
from local_stack.stack_directory import StackDirectory
from local_stack.supervisor import Supervisor
from local_stack.testing import SLEEPS, wait_until

SAYS_STOPPED = (
    "import signal, sys, time, pathlib; file = pathlib.Path(sys.argv[1])\n"
    "signal.signal(signal.SIGTERM, lambda *_: (file.open('a').write(sys.argv[2]), sys.exit()))\n"
    "pathlib.Path(sys.argv[1] + sys.argv[2]).touch()\n"
    "time.sleep(600)"
)


class Answer:
    """A probe that always answers the same."""

    def __init__(self, missing: str) -> None:
        self.text = missing

    async def missing(self) -> str:
        return self.text


class FileExists:
    """A probe that is satisfied by a file."""

    def __init__(self, file: Path) -> None:
        self.file = file

    async def missing(self) -> str:
        return "" if self.file.exists() else f"{self.file} does not exist"


def supervisor(directory: Path, specs: Sequence[ProcessSpec], start_timeout_s: float = 60) -> Supervisor:
    settings = Settings(directory=directory, start_timeout_s=start_timeout_s, stop_grace_s=10)
    stack = StackDirectory(directory)
    stack.create()
    return Supervisor(specs, stack, settings, "run", ",".join, time.monotonic)


def ledger_of(directory: Path) -> Ledger:
    ledger = read_ledger(StackDirectory(directory).ledger)
    assert ledger is not None
    return ledger


async def test_the_stack_file_is_written_once_all_are_ready(tmp_path: Path) -> None:
    job = ProcessSpec("job", (sys.executable, "-c", "pass"), may_end=True)
    server = ProcessSpec("server", (sys.executable, "-c", SLEEPS), probe=Answer(""), after=("job",))
    stop = asyncio.Event()
    running = asyncio.create_task(supervisor(tmp_path, [job, server]).run(stop))
    stack_file = StackDirectory(tmp_path).stack_file

    await asyncio.to_thread(wait_until, stack_file.exists, "the stack file is written")
    text, ledger = stack_file.read_text(), ledger_of(tmp_path)
    stop.set()
    await running

    assert text == "job,server"
    assert ledger.ready
    assert not stack_file.exists()
    pid = ledger.processes["server"].pid
    assert pid is not None
    assert not psutil.pid_exists(pid)


async def test_one_that_is_not_ready_in_time_is_named_with_its_reason(tmp_path: Path) -> None:
    spec = ProcessSpec("server", (sys.executable, "-c", SLEEPS), probe=Answer("two partitions to go"))

    with pytest.raises(
        NotReadyError, match=r"not ready within 0.5 s: server: two partitions to go \(log: .*server.log"
    ):
        await supervisor(tmp_path, [spec], start_timeout_s=0.5).run(asyncio.Event())

    assert ledger_of(tmp_path).processes["server"].state == "stopped"


async def test_what_stops_last_stops_last(tmp_path: Path) -> None:
    order = tmp_path / "order"
    specs = [
        ProcessSpec(
            name,
            (sys.executable, "-c", SAYS_STOPPED, str(order), name),
            probe=FileExists(tmp_path / f"order{name}"),
            stops_last=name == "a",
        )
        for name in ("a", "b", "c")
    ]
    stop = asyncio.Event()
    running = asyncio.create_task(supervisor(tmp_path, specs).run(stop))
    await asyncio.to_thread(wait_until, StackDirectory(tmp_path).stack_file.exists, "all are ready")

    stop.set()
    await running

    assert order.read_text() in ("bca", "cba")
