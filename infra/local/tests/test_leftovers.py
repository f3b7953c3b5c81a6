"""What a killed supervisor left."""

import subprocess
import sys
from pathlib import Path

import psutil

from local_stack import child_process
from local_stack.ledger import Entry, Ledger
from local_stack.leftovers import RUN_VARIABLE, end_leftovers
from local_stack.testing import SLEEPS


def sleeper(directory: Path, run: str = "") -> subprocess.Popen[bytes]:
    return child_process.start([sys.executable, "-c", SLEEPS], directory / "log", {RUN_VARIABLE: run})


def ledger(run: str, pid: int | None = None, created: float | None = None) -> Ledger:
    entry = Entry(state="ready", pid=pid, created=created, log=Path("log"))
    return Ledger(run=run, supervisor=1, processes={"it": entry})


def test_a_process_that_bears_the_name_of_the_run_is_ended(tmp_path: Path) -> None:
    process = sleeper(tmp_path, run="mine")

    count = end_leftovers(ledger("mine"))

    process.wait()
    assert count == 1
    assert not psutil.pid_exists(process.pid)


def test_a_recorded_process_is_ended(tmp_path: Path) -> None:
    process = sleeper(tmp_path)

    count = end_leftovers(ledger("mine", process.pid, psutil.Process(process.pid).create_time()))

    process.wait()
    assert count == 1
    assert not psutil.pid_exists(process.pid)


def test_a_process_that_got_the_id_of_a_recorded_one_is_left_alone(tmp_path: Path) -> None:
    process = sleeper(tmp_path, run="another")

    count = end_leftovers(ledger("mine", process.pid, psutil.Process(process.pid).create_time() - 60))

    assert count == 0
    assert process.poll() is None
    child_process.kill_family(process.pid)
    process.wait()


def test_processes_without_a_run_are_not_of_a_run_without_a_name(tmp_path: Path) -> None:
    process = sleeper(tmp_path)

    count = end_leftovers(ledger(""))

    assert count == 0
    child_process.kill_family(process.pid)
    process.wait()
