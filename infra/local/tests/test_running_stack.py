"""Starting a stack in this process and in the background, holding on to it, and ending it."""

import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from small_stack import small_stack, start_small

from local_stack import LocalStackError
from local_stack.running_stack import RunningStack, run_stack, running_stack, start_stack, stop_stack
from local_stack.settings import Settings
from local_stack.stack_directory import RUN_VARIABLE, StackDirectory
from local_stack.stack_file import read_stack
from testkit.waiting import wait_until


def test_why_it_failed_is_left_for_others_to_read(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        settings = Settings(directory=tmp_path, edge_2_port=server.getsockname()[1])

        with pytest.raises(LocalStackError, match="LOCAL_STACK_EDGE_2_PORT"):
            run_stack(settings, small_stack)

    assert "LOCAL_STACK_EDGE_2_PORT" in StackDirectory(tmp_path).ledger().failure


def test_a_second_one_is_refused(tmp_path: Path) -> None:
    with StackDirectory(tmp_path).locked(), pytest.raises(LocalStackError, match="already runs in"):
        run_stack(Settings(directory=tmp_path), small_stack)


def test_a_directory_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(LocalStackError, match="cannot write to"):
        run_stack(Settings(directory=tmp_path / "file"), small_stack)


@pytest.fixture
def settings(tmp_path: Path) -> Iterator[Settings]:
    chosen = Settings(directory=tmp_path / "stack", restart_first_s=0.05, restart_limit=3)
    yield chosen
    stop_stack(chosen)


@pytest.fixture
def directory(settings: Settings) -> StackDirectory:
    return StackDirectory(settings.directory)


def of_the_run(run: str) -> set[int]:
    pids = set()
    for process in psutil.process_iter():
        try:
            if process.environ().get(RUN_VARIABLE) == run:
                pids.add(process.pid)
        except psutil.Error:
            continue
    return pids


def test_a_ready_stack_has_a_stack_file_and_ends_without_a_trace(settings: Settings, directory: StackDirectory) -> None:
    reports: list[str] = []

    supervisor = start_stack(settings, start_small, reports.append)
    stack, run = read_stack(directory.stack_file), directory.ledger().run
    wait_until(lambda: len(of_the_run(run)) == 3, "the server, the parent and its child run")
    ended = stop_stack(settings)
    supervisor.wait()

    assert stack.supervisor.pid == supervisor.pid
    assert [line.split()[2] for line in reports] == ["server", "parent"]
    assert ended
    assert not of_the_run(run)
    assert not directory.stack_file.exists()
    assert not directory.ledger_file.exists()


def test_the_stack_file_names_the_new_process_after_a_restart(settings: Settings, directory: StackDirectory) -> None:
    supervisor = start_stack(settings, start_small, lambda _: None)
    first = read_stack(directory.stack_file).processes["parent"].pid
    assert first is not None

    os.kill(first, signal.SIGKILL)

    wait_until(
        lambda: read_stack(directory.stack_file).processes["parent"].pid not in (None, first), "the parent runs again"
    )
    stop_stack(settings)
    supervisor.wait()


def test_a_second_start_is_refused_with_the_addresses(settings: Settings, directory: StackDirectory) -> None:
    supervisor = start_stack(settings, start_small, lambda _: None)
    gateway = read_stack(directory.stack_file).gateway.https

    with pytest.raises(LocalStackError, match=f"already runs in {directory.root} .*{gateway}"):
        start_stack(settings, start_small, lambda _: None)

    assert directory.supervisor_pid() == supervisor.pid
    stop_stack(settings)
    supervisor.wait()


def test_nothing_is_left_when_the_supervisor_is_killed(settings: Settings, directory: StackDirectory) -> None:
    supervisor = start_stack(settings, start_small, lambda _: None)
    run = directory.ledger().run
    wait_until(lambda: len(of_the_run(run)) == 3, "the server, the parent and its child run")

    supervisor.kill()
    supervisor.wait()
    ended = stop_stack(settings)

    assert ended
    assert not of_the_run(run)
    assert not directory.stack_file.exists()


def test_a_start_after_a_killed_supervisor_cleans_up_first(settings: Settings, directory: StackDirectory) -> None:
    killed = start_stack(settings, start_small, lambda _: None)
    run = directory.ledger().run
    wait_until(lambda: len(of_the_run(run)) == 3, "the server, the parent and its child run")
    killed.kill()
    killed.wait()

    supervisor = start_stack(settings, start_small, lambda _: None)

    assert not of_the_run(run)
    assert read_stack(directory.stack_file).supervisor.pid == supervisor.pid
    stop_stack(settings)
    supervisor.wait()


def test_a_taken_port_fails_the_start_by_its_setting(settings: Settings, directory: StackDirectory) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        taken = settings.model_copy(update={"kafka_port": server.getsockname()[1]})

        with pytest.raises(LocalStackError, match=r"is in use: .*LOCAL_STACK_KAFKA_PORT"):
            start_stack(taken, start_small, lambda _: None)

    assert directory.supervisor_pid() is None


def test_ending_nothing_is_no_error(settings: Settings) -> None:
    assert not stop_stack(settings)


@pytest.fixture
def running(tmp_path: Path) -> Iterator[RunningStack]:
    settings = Settings(directory=tmp_path / "stack", restart_first_s=0.05)
    with running_stack(settings, start=start_small) as stack:
        yield stack


def test_a_killed_process_runs_again_under_another_id(running: RunningStack) -> None:
    before = running.file.processes["server"].pid

    running.kill("server")
    running.wait_ready("server")

    assert running.file.processes["server"].pid not in (None, before)
    assert running.entry("server").restarts == 1


def test_a_stopped_process_stays_down_until_it_is_started(running: RunningStack) -> None:
    pid = running.file.processes["server"].pid
    assert pid is not None

    running.stop("server")
    stopped = running.file.processes["server"].pid
    alive = psutil.pid_exists(pid)
    running.start("server")
    running.wait_ready("server")

    assert stopped is None
    assert not alive
    assert running.file.processes["server"].pid not in (None, pid)


def test_a_killed_process_that_is_held_stays_down_until_it_is_started(running: RunningStack) -> None:
    pid = running.file.processes["server"].pid
    assert pid is not None

    running.kill("server", hold=True)
    held = running.entry("server").state
    alive = psutil.pid_exists(pid)
    running.start("server")
    running.wait_ready("server")

    assert held == "held"
    assert not alive
    assert running.file.processes["server"].pid not in (None, pid)


def test_an_unknown_process_is_named(running: RunningStack) -> None:
    with pytest.raises(LocalStackError, match="no process databse in the stack"):
        running.kill("databse")


def test_waiting_for_a_stack_that_has_ended_fails_at_once(tmp_path: Path) -> None:
    with running_stack(Settings(directory=tmp_path / "stack"), start=start_small) as stack:
        pass

    with pytest.raises(LocalStackError, match="because the stack has ended"):
        stack.wait_announced(60)
