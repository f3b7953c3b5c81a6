"""A stack's directory."""

import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from small_stack import SLEEPS

from local_stack import LocalStackError
from local_stack.stack_directory import RUN_VARIABLE, Entry, Ledger, StackDirectory, write_private
from testkit import processes


@pytest.fixture
def directory(tmp_path: Path) -> StackDirectory:
    stack_directory = StackDirectory(tmp_path / "stack")
    stack_directory.create()
    return stack_directory


def test_a_directory_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(LocalStackError, match=r"cannot write to .*file/stack .*set LOCAL_STACK_DIRECTORY"):
        StackDirectory(tmp_path / "file" / "stack").create()


def test_a_new_run_puts_old_logs_aside_and_holds_nothing_down(directory: StackDirectory) -> None:
    directory.log_file("broker").write_text("old")
    directory.stack_file.touch()
    (directory.held / "broker").touch()

    directory.begin_run()

    assert directory.log_file("broker").with_suffix(".log.1").read_text() == "old"
    assert not directory.log_file("broker").exists()
    assert not directory.stack_file.exists()
    assert not list(directory.held.iterdir())


def test_a_new_run_keeps_the_log_that_its_supervisor_writes(directory: StackDirectory) -> None:
    directory.log_file("supervisor").write_text("begun")

    directory.begin_run()

    assert directory.log_file("supervisor").read_text() == "begun"


def ledger(**states: str) -> Ledger:
    processes = {name: Entry.model_validate({"state": state, "log": f"{name}.log"}) for name, state in states.items()}
    return Ledger(run="run", supervisor=1, processes=processes)


def test_it_reads_what_it_wrote(tmp_path: Path) -> None:
    written = ledger(broker="ready", topics="done")

    StackDirectory(tmp_path).write_ledger(written)

    assert StackDirectory(tmp_path).ledger() == written


def test_it_is_empty_when_there_is_none(tmp_path: Path) -> None:
    assert StackDirectory(tmp_path).ledger() == Ledger()


def test_a_stack_is_ready_when_every_process_is_ready_or_done() -> None:
    assert ledger(broker="ready", topics="done").ready
    assert not ledger(broker="ready", gateway="unready").ready


def test_only_the_owner_reads_it_and_no_draft_stays(tmp_path: Path) -> None:
    write_private(tmp_path / "stack.json", "{}")

    assert stat.S_IMODE((tmp_path / "stack.json").stat().st_mode) == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["stack.json"]


HOLDER = """
import signal, sys
from pathlib import Path
from local_stack.stack_directory import StackDirectory
with StackDirectory(Path(sys.argv[1])).locked():
    print("held", flush=True)
    signal.pause()
"""


def test_the_holder_is_known_while_it_holds(tmp_path: Path) -> None:
    with StackDirectory(tmp_path).locked():
        held_by = StackDirectory(tmp_path).supervisor_pid()

    assert held_by == os.getpid()
    assert StackDirectory(tmp_path).supervisor_pid() is None


def test_nobody_holds_a_lock_that_does_not_exist(tmp_path: Path) -> None:
    assert StackDirectory(tmp_path).supervisor_pid() is None


def test_a_second_supervisor_is_refused(tmp_path: Path) -> None:
    with (
        StackDirectory(tmp_path).locked(),
        pytest.raises(LocalStackError, match=f"already runs in {tmp_path}"),
        StackDirectory(tmp_path).locked(),
    ):
        pytest.fail("held twice")


def test_a_killed_holder_holds_no_longer(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", HOLDER, str(tmp_path)], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        before = StackDirectory(tmp_path).supervisor_pid()
        process.send_signal(signal.SIGKILL)

    assert before == process.pid
    assert StackDirectory(tmp_path).supervisor_pid() is None


def sleeper(directory: Path, run: str = "") -> subprocess.Popen[bytes]:
    return processes.start([sys.executable, "-c", SLEEPS], directory / "log", {RUN_VARIABLE: run})


def ledger_of(run: str, pid: int | None = None, created: float | None = None) -> Ledger:
    entry = Entry(state="ready", pid=pid, created=created, log=Path("log"))
    return Ledger(run=run, supervisor=1, processes={"it": entry})


def test_a_process_that_bears_the_name_of_the_run_is_ended(tmp_path: Path) -> None:
    process = sleeper(tmp_path, run="mine")

    count = ledger_of("mine").end_leftovers()

    process.wait()
    assert count == 1
    assert not psutil.pid_exists(process.pid)


def test_a_recorded_process_is_ended(tmp_path: Path) -> None:
    process = sleeper(tmp_path)

    count = ledger_of("mine", process.pid, psutil.Process(process.pid).create_time()).end_leftovers()

    process.wait()
    assert count == 1
    assert not psutil.pid_exists(process.pid)


def test_a_process_that_got_the_id_of_a_recorded_one_is_left_alone(tmp_path: Path) -> None:
    process = sleeper(tmp_path, run="another")

    count = ledger_of("mine", process.pid, psutil.Process(process.pid).create_time() - 60).end_leftovers()

    assert count == 0
    assert process.poll() is None
    processes.kill_family(process.pid)
    process.wait()


def test_processes_without_a_run_are_not_of_a_run_without_a_name(tmp_path: Path) -> None:
    process = sleeper(tmp_path)

    count = ledger_of("").end_leftovers()

    assert count == 0
    processes.kill_family(process.pid)
    process.wait()
