"""One process, kept running."""

import asyncio
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from local_stack.errors import NotInstalledError, NotReadyError
from local_stack.ledger import Entry, State
from local_stack.process_spec import ProcessSpec
from local_stack.restart_policy import RestartPolicy
from local_stack.supervised_process import SupervisedProcess
from local_stack.testing import SLEEPS, STARTS_A_CHILD, wait_until

GRACE_S = 5.0
ENDS_WELL = (
    f"import signal, sys; signal.signal(signal.SIGTERM, lambda *_: sys.exit(0)); print('on', flush=True); {SLEEPS}"
)


class Switch:
    """A probe that a test decides."""

    def __init__(self, missing: str = "") -> None:
        self.text = missing

    async def missing(self) -> str:
        return self.text


def supervised(directory: Path, code: str, probe: Switch | None = None, *, may_end: bool = False) -> SupervisedProcess:
    spec = ProcessSpec("it", (sys.executable, "-c", code), {"WORD": "said"}, probe, may_end=may_end)
    policy = RestartPolicy(first_s=0.01, most_s=0.01, limit=3, window_s=60)
    return SupervisedProcess(spec, directory / "it.log", directory / "it", policy, time.monotonic, lambda: None)


def says_on(log: Path) -> bool:
    return log.exists() and "on" in log.read_text()


async def becomes(process: SupervisedProcess, state: State) -> Entry:
    return await until(process, lambda entry: entry.state == state)


async def until(process: SupervisedProcess, reached: Callable[[Entry], bool]) -> Entry:
    await asyncio.to_thread(wait_until, lambda: reached(process.entry), f"a state after {process.entry}")
    return process.entry


async def ended(process: SupervisedProcess, run: asyncio.Task[None]) -> None:
    run.cancel()
    await asyncio.gather(run, return_exceptions=True)
    await process.stop(GRACE_S)


async def test_it_is_ready_when_its_probe_misses_nothing(tmp_path: Path) -> None:
    probe = Switch("two partitions to go")
    process = supervised(tmp_path, SLEEPS, probe)
    run = asyncio.create_task(process.run([], {}, GRACE_S))

    starting = await until(process, lambda entry: entry.reason == "two partitions to go")
    probe.text = ""
    ready = await becomes(process, "ready")
    await ended(process, run)

    assert starting.state == "starting"
    assert starting.pid == ready.pid
    assert process.entry.state == "stopped"
    assert ready.pid is not None
    assert not psutil.pid_exists(ready.pid)


async def test_it_says_when_it_is_not_ready_any_more(tmp_path: Path) -> None:
    probe = Switch()
    process = supervised(tmp_path, SLEEPS, probe)
    run = asyncio.create_task(process.run([], {}, GRACE_S))
    await becomes(process, "ready")

    probe.text = "the broker is away"
    entry = await becomes(process, "unready")
    await ended(process, run)

    assert entry.reason == "the broker is away"


async def test_it_starts_again_when_it_was_killed(tmp_path: Path) -> None:
    process = supervised(tmp_path, SLEEPS, Switch())
    run = asyncio.create_task(process.run([], {}, GRACE_S))
    first = await becomes(process, "ready")
    assert first.pid is not None

    psutil.Process(first.pid).kill()
    second = await until(process, lambda entry: entry.state == "ready" and entry.pid != first.pid)
    await ended(process, run)

    assert second.restarts == 1


async def test_what_it_started_has_ended_before_it_starts_again(tmp_path: Path) -> None:
    process = supervised(tmp_path, STARTS_A_CHILD, Switch())
    run = asyncio.create_task(process.run([], {}, GRACE_S))
    first = await becomes(process, "ready")
    assert first.pid is not None
    parent = psutil.Process(first.pid)
    await asyncio.to_thread(wait_until, parent.children, "the child runs")
    (child,) = parent.children()

    parent.kill()
    await until(process, lambda entry: entry.pid not in (None, first.pid))
    alive = child.is_running() and child.status() != psutil.STATUS_ZOMBIE
    await ended(process, run)

    assert not alive


async def test_one_that_keeps_ending_fails_with_the_end_of_its_log(tmp_path: Path) -> None:
    process = supervised(tmp_path, "import os, sys; sys.exit('it cannot: ' + os.environ['WORD'])")

    with pytest.raises(NotReadyError, match=r"(?s)it ended 3 times in 60 s, at last with status 1.*it cannot: said"):
        await process.run([], {}, GRACE_S)


async def test_a_job_is_done_when_it_ends_well(tmp_path: Path) -> None:
    process = supervised(tmp_path, "pass", may_end=True)

    await process.run([], {}, GRACE_S)

    assert process.was_ready.is_set()
    assert (process.entry.state, process.entry.pid) == ("done", None)


async def test_it_waits_for_what_it_comes_after(tmp_path: Path) -> None:
    process = supervised(tmp_path, "pass", may_end=True)
    before = asyncio.Event()
    run = asyncio.create_task(process.run([before], {}, GRACE_S))
    await asyncio.sleep(0)
    waiting = process.entry.state

    before.set()
    await run

    assert waiting == "waiting"
    assert process.entry.state == "done"


async def test_it_stays_down_while_it_is_held(tmp_path: Path) -> None:
    process = supervised(tmp_path, SLEEPS, Switch())
    run = asyncio.create_task(process.run([], {}, GRACE_S))
    await becomes(process, "ready")

    (tmp_path / "it").touch()
    held = await becomes(process, "held")
    (tmp_path / "it").unlink()
    again = await becomes(process, "ready")
    await ended(process, run)

    assert held.pid is None
    assert again.restarts == 0


async def test_one_that_may_end_and_ends_well_is_held_and_not_done(tmp_path: Path) -> None:
    process = supervised(tmp_path, ENDS_WELL, Switch(), may_end=True)
    run = asyncio.create_task(process.run([], {}, GRACE_S))
    await asyncio.to_thread(wait_until, lambda: says_on(process.entry.log), "it handles the signal")

    (tmp_path / "it").touch()
    await becomes(process, "held")
    (tmp_path / "it").unlink()
    again = await becomes(process, "ready")
    await ended(process, run)

    assert again.pid is not None


async def test_a_program_that_does_not_exist_is_not_installed(tmp_path: Path) -> None:
    spec = ProcessSpec("it", (str(tmp_path / "missing"),))
    policy = RestartPolicy(1, 1, 1, 1)
    process = SupervisedProcess(spec, tmp_path / "log", tmp_path / "held", policy, time.monotonic, lambda: None)

    with pytest.raises(NotInstalledError, match="missing does not exist: run `make install`"):
        await process.run([], {}, GRACE_S)
