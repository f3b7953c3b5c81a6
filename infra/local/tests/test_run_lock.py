"""At most one supervisor in a directory."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from local_stack import run_lock
from local_stack.errors import AlreadyRunningError

HOLDER = """
import signal, sys
from pathlib import Path
from local_stack import run_lock
with run_lock.hold(Path(sys.argv[1])):
    print("held", flush=True)
    signal.pause()
"""


def test_the_holder_is_known_while_it_holds(tmp_path: Path) -> None:
    lock = tmp_path / "lock"

    with run_lock.hold(lock):
        held_by = run_lock.holder(lock)

    assert held_by == os.getpid()
    assert run_lock.holder(lock) is None


def test_nobody_holds_a_lock_that_does_not_exist(tmp_path: Path) -> None:
    assert run_lock.holder(tmp_path / "lock") is None


def test_a_second_supervisor_is_refused(tmp_path: Path) -> None:
    lock = tmp_path / "lock"

    with (
        run_lock.hold(lock),
        pytest.raises(AlreadyRunningError, match=f"already runs in {tmp_path}"),
        run_lock.hold(lock),
    ):
        pytest.fail("held twice")


def test_a_killed_holder_holds_no_longer(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    with subprocess.Popen([sys.executable, "-c", HOLDER, str(lock)], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        before = run_lock.holder(lock)
        process.send_signal(signal.SIGKILL)

    assert before == process.pid
    assert run_lock.holder(lock) is None
