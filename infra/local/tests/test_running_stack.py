"""A running stack as a value."""

from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from local_stack.errors import NotReadyError, NotRunningError
from local_stack.running_stack import RunningStack, running_stack
from local_stack.settings import Settings
from local_stack.testing import start_small


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

    running.kill_and_hold("server")
    held = running.entry("server").state
    alive = psutil.pid_exists(pid)
    running.start("server")
    running.wait_ready("server")

    assert held == "held"
    assert not alive
    assert running.file.processes["server"].pid not in (None, pid)


def test_an_unknown_process_is_named(running: RunningStack) -> None:
    with pytest.raises(NotRunningError, match="no process databse in the stack"):
        running.kill("databse")


def test_waiting_for_a_stack_that_has_ended_fails_at_once(tmp_path: Path) -> None:
    with running_stack(Settings(directory=tmp_path / "stack"), start=start_small) as stack:
        pass

    with pytest.raises(NotReadyError, match="because the stack has ended"):
        stack.wait_announced(60)
