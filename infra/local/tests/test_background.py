"""Starting a stack in the background, and ending it."""

import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from local_stack import run_lock
from local_stack.background import start_stack, stop_stack
from local_stack.errors import AlreadyRunningError, NotReadyError
from local_stack.ledger import read_ledger
from local_stack.leftovers import RUN_VARIABLE
from local_stack.settings import Settings
from local_stack.stack_directory import StackDirectory
from local_stack.stack_file import read_stack
from local_stack.testing import start_small, wait_until


@pytest.fixture
def settings(tmp_path: Path) -> Iterator[Settings]:
    chosen = Settings(directory=tmp_path / "stack", restart_first_s=0.05, restart_limit=3)
    yield chosen
    stop_stack(chosen)


@pytest.fixture
def directory(settings: Settings) -> StackDirectory:
    return StackDirectory(settings.directory)


def of_the_run(run: str) -> set[int]:
    found = set()
    for process in psutil.process_iter():
        try:
            if process.environ().get(RUN_VARIABLE) == run:
                found.add(process.pid)
        except psutil.Error:
            continue
    return found


def run_of(directory: StackDirectory) -> str:
    ledger = read_ledger(directory.ledger)
    assert ledger is not None
    return ledger.run


def test_a_ready_stack_has_a_stack_file_and_ends_without_a_trace(settings: Settings, directory: StackDirectory) -> None:
    told: list[str] = []

    supervisor = start_stack(settings, start_small, told.append)
    stack, run = read_stack(directory.stack_file), run_of(directory)
    wait_until(lambda: len(of_the_run(run)) == 3, "the server, the parent and its child run")
    ended = stop_stack(settings)
    supervisor.wait()

    assert stack.supervisor.pid == supervisor.pid
    assert [line.split()[2] for line in told] == ["server", "parent"]
    assert ended
    assert not of_the_run(run)
    assert not directory.stack_file.exists()
    assert read_ledger(directory.ledger) is None


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

    with pytest.raises(AlreadyRunningError, match=f"already runs in {directory.root} .*{gateway}"):
        start_stack(settings, start_small, lambda _: None)

    assert run_lock.holder(directory.lock) == supervisor.pid
    stop_stack(settings)
    supervisor.wait()


def test_nothing_is_left_when_the_supervisor_is_killed(settings: Settings, directory: StackDirectory) -> None:
    supervisor = start_stack(settings, start_small, lambda _: None)
    run = run_of(directory)
    wait_until(lambda: len(of_the_run(run)) == 3, "the server, the parent and its child run")

    supervisor.kill()
    supervisor.wait()
    ended = stop_stack(settings)

    assert ended
    assert not of_the_run(run)
    assert not directory.stack_file.exists()


def test_a_start_after_a_killed_supervisor_cleans_up_first(settings: Settings, directory: StackDirectory) -> None:
    killed = start_stack(settings, start_small, lambda _: None)
    run = run_of(directory)
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

        with pytest.raises(NotReadyError, match=r"is in use: .*LOCAL_STACK_KAFKA_PORT"):
            start_stack(taken, start_small, lambda _: None)

    assert run_lock.holder(directory.lock) is None


def test_ending_nothing_is_no_error(settings: Settings) -> None:
    assert not stop_stack(settings)
