"""Programs that end with the program that started them."""

import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from testkit import processes
from testkit.waiting import wait_until

SLEEP = "import time; time.sleep(600)"
STUBBORN = f"import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('on', flush=True); {SLEEP}"
PARENT = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {SLEEP!r}])"
STARTER = """
import sys, time
from pathlib import Path
from testkit import processes
from testkit.waiting import wait_until
print(processes.start([sys.executable, "-c", "import time; time.sleep(600)"], Path(sys.argv[1])).pid, flush=True)
time.sleep(600)
"""


def python(code: str, log: Path) -> subprocess.Popen[bytes]:
    return processes.start([sys.executable, "-c", code], log)


def test_its_output_is_appended_to_the_log(tmp_path: Path) -> None:
    log = tmp_path / "logs" / "out.log"

    for word in ("one", "two"):
        python(f"print({word!r})", log).wait()

    assert log.read_text() == "one\ntwo\n"


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux's kernel does this")
def test_it_ends_when_its_starter_is_killed(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", STARTER, str(tmp_path / "log")], stdout=subprocess.PIPE) as starter:
        assert starter.stdout is not None
        child = int(starter.stdout.readline())
        was_alive = psutil.pid_exists(child)
        starter.kill()

    assert was_alive
    wait_until(lambda: not psutil.pid_exists(child), "the child of a killed starter ends")


def test_stopping_ends_what_ignores_it(tmp_path: Path) -> None:
    process = python(STUBBORN, tmp_path / "log")
    wait_until(lambda: "on" in (tmp_path / "log").read_text(), "the signal is ignored")

    processes.stop(process.pid, grace_s=0.2)

    assert not psutil.pid_exists(process.pid)
    process.wait()


def test_killing_ends_the_children_too(tmp_path: Path) -> None:
    process = python(PARENT, tmp_path / "log")
    wait_until(lambda: psutil.Process(process.pid).children(), "the child runs")
    (child,) = psutil.Process(process.pid).children()

    processes.kill_family(process.pid)

    process.wait()
    assert not child.is_running()


def test_a_group_outlives_its_leader_until_it_is_killed(tmp_path: Path) -> None:
    process = python(PARENT, tmp_path / "log")
    wait_until(lambda: psutil.Process(process.pid).children(), "the child runs")
    (child,) = psutil.Process(process.pid).children()
    process.kill()
    process.wait()
    was_left = child.is_running()

    processes.kill_group(process.pid)

    assert was_left
    wait_until(lambda: not child.is_running() or child.status() == psutil.STATUS_ZOMBIE, "the rest of the group ends")


def test_stopping_what_has_ended_does_nothing(tmp_path: Path) -> None:
    process = python("pass", tmp_path / "log")
    process.wait()

    processes.stop(process.pid)
    processes.kill_family(process.pid)
    processes.kill_group(process.pid)

    assert process.returncode == 0


def test_the_tail_of_a_log_is_its_last_lines(tmp_path: Path) -> None:
    log = tmp_path / "broker.log"
    log.write_text("".join(f"line {number}\n" for number in range(processes.TAIL_BYTES)))

    assert processes.tail(log, 2) == f"line {processes.TAIL_BYTES - 2}\nline {processes.TAIL_BYTES - 1}"


def test_the_tail_of_a_missing_or_empty_log_says_that_it_is_empty(tmp_path: Path) -> None:
    (tmp_path / "empty.log").touch()

    assert "empty.log is empty" in processes.tail(tmp_path / "empty.log")
    assert "missing.log is empty" in processes.tail(tmp_path / "missing.log")
