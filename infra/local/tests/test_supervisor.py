"""One process kept running, and all processes of a stack."""

import asyncio
import sys
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path

import psutil
import pytest
from small_stack import SLEEPS, STARTS_A_CHILD

from local_stack import LocalStackError
from local_stack.process_spec import ProcessSpec
from local_stack.settings import Settings, postgres_of
from local_stack.sources import postgres_source
from local_stack.stack_directory import Entry, StackDirectory, State
from local_stack.stack_file import read_stack
from local_stack.supervisor import SupervisedProcess, Supervisor, restart_pause_s
from testkit.ports import free_port
from testkit.postgres import connect
from testkit.waiting import wait_until


def pauses(*ends: float) -> list[float | None]:
    """Returns the pause after each of the ends."""
    settings = Settings(restart_first_s=1, restart_max_s=3, restart_limit=5, restart_window_s=60)
    counted: deque[float] = deque()

    def pause(end: float) -> float | None:
        counted.append(end)
        return restart_pause_s(counted, settings)

    return [pause(end) for end in ends]


def test_pauses_double_up_to_the_longest() -> None:
    assert pauses(0, 1, 2, 3) == [1, 2, 3, 3]


def test_it_gives_up_at_the_limit_within_the_window() -> None:
    assert [pause is None for pause in pauses(0, 10, 20, 30, 59)] == [False, False, False, False, True]


def test_ends_before_the_window_do_not_count() -> None:
    assert pauses(0, 1, 2, 3, 63)[-1] == 1


ENDS_WELL = (
    f"import signal, sys; signal.signal(signal.SIGTERM, lambda *_: sys.exit(0)); print('on', flush=True); {SLEEPS}"
)


class Switch:
    """A probe that a test decides."""

    def __init__(self, missing: str = "") -> None:
        self.text = missing

    def __call__(self) -> str:
        return self.text


def supervised(directory: Path, code: str, probe: Switch | None = None, *, may_end: bool = False) -> SupervisedProcess:
    spec = ProcessSpec("it", (sys.executable, "-c", code), {"WORD": "said"}, probe, may_end=may_end)
    return in_run(spec, directory)


def in_run(spec: ProcessSpec, directory: Path) -> SupervisedProcess:
    settings = Settings(directory=directory, restart_first_s=0.01, restart_max_s=0.01, restart_limit=3, stop_grace_s=5)
    settings.files.create()
    return SupervisedProcess(spec, settings, "run", lambda: None)


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
    await process.stop()


async def test_it_is_ready_when_its_probe_misses_nothing(tmp_path: Path) -> None:
    probe = Switch("two partitions to go")
    process = supervised(tmp_path, SLEEPS, probe)
    run = asyncio.create_task(process.run_until_done([]))

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
    run = asyncio.create_task(process.run_until_done([]))
    await becomes(process, "ready")

    probe.text = "the broker is away"
    entry = await becomes(process, "unready")
    await ended(process, run)

    assert entry.reason == "the broker is away"


async def test_it_starts_again_when_it_was_killed(tmp_path: Path) -> None:
    process = supervised(tmp_path, SLEEPS, Switch())
    run = asyncio.create_task(process.run_until_done([]))
    first = await becomes(process, "ready")
    assert first.pid is not None

    psutil.Process(first.pid).kill()
    second = await until(process, lambda entry: entry.state == "ready" and entry.pid != first.pid)
    await ended(process, run)

    assert second.restarts == 1


async def test_what_it_started_has_ended_before_it_starts_again(tmp_path: Path) -> None:
    process = supervised(tmp_path, STARTS_A_CHILD, Switch())
    run = asyncio.create_task(process.run_until_done([]))
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

    with pytest.raises(LocalStackError, match=r"(?s)it ended 3 times in 60 s, at last with status 1.*it cannot: said"):
        await process.run_until_done([])


async def test_a_job_is_done_when_it_ends_well(tmp_path: Path) -> None:
    process = supervised(tmp_path, "pass", may_end=True)

    await process.run_until_done([])

    assert process.was_ready.is_set()
    assert (process.entry.state, process.entry.pid) == ("done", None)


async def test_it_waits_for_what_it_comes_after(tmp_path: Path) -> None:
    process = supervised(tmp_path, "pass", may_end=True)
    before = asyncio.Event()
    run = asyncio.create_task(process.run_until_done([before]))
    await asyncio.sleep(0)
    waiting = process.entry.state

    before.set()
    await run

    assert waiting == "waiting"
    assert process.entry.state == "done"


async def test_it_stays_down_while_it_is_held(tmp_path: Path) -> None:
    process = supervised(tmp_path, SLEEPS, Switch())
    run = asyncio.create_task(process.run_until_done([]))
    await becomes(process, "ready")

    (tmp_path / "held" / "it").touch()
    held = await becomes(process, "held")
    (tmp_path / "held" / "it").unlink()
    again = await becomes(process, "ready")
    await ended(process, run)

    assert held.pid is None
    assert again.restarts == 0


async def test_one_that_may_end_and_ends_well_is_held_and_not_done(tmp_path: Path) -> None:
    process = supervised(tmp_path, ENDS_WELL, Switch(), may_end=True)
    run = asyncio.create_task(process.run_until_done([]))
    await asyncio.to_thread(wait_until, lambda: says_on(process.entry.log), "it handles the signal")

    (tmp_path / "held" / "it").touch()
    await becomes(process, "held")
    (tmp_path / "held" / "it").unlink()
    again = await becomes(process, "ready")
    await ended(process, run)

    assert again.pid is not None


async def test_postgresql_ends_in_order_although_somebody_is_connected(tmp_path: Path) -> None:
    settings = Settings(directory=tmp_path, source="postgres", postgres_port=free_port())
    [database] = postgres_source(settings).database
    process = in_run(database, tmp_path)
    run = asyncio.create_task(process.run_until_done([]))
    await becomes(process, "ready")

    with connect(postgres_of(settings).dsn):
        await ended(process, run)

    assert "database system is shut down" in process.entry.log.read_text()


async def test_a_program_that_does_not_exist_is_not_installed(tmp_path: Path) -> None:
    spec = ProcessSpec("it", (str(tmp_path / "missing"),))
    process = in_run(spec, tmp_path)

    with pytest.raises(LocalStackError, match="missing does not exist: run `make install`"):
        await process.run_until_done([])


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

    def __call__(self) -> str:
        return self.text


class FileExists:
    """A probe that is satisfied by a file."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def __call__(self) -> str:
        return "" if self.file.exists() else f"{self.file} does not exist"


def supervisor(directory: Path, specs: Sequence[ProcessSpec], start_timeout_s: float = 60) -> Supervisor:
    settings = Settings(directory=directory, start_timeout_s=start_timeout_s, stop_grace_s=10)
    settings.files.create()
    return Supervisor(specs, settings, {})


async def test_the_stack_file_is_written_once_all_are_ready(tmp_path: Path) -> None:
    job = ProcessSpec("job", (sys.executable, "-c", "pass"), may_end=True)
    server = ProcessSpec("server", (sys.executable, "-c", SLEEPS), probe=Answer(""), after=("job",))
    stop = asyncio.Event()
    running = asyncio.create_task(supervisor(tmp_path, [job, server]).run(stop))
    stack_file = StackDirectory(tmp_path).stack_file

    await asyncio.to_thread(wait_until, stack_file.exists, "the stack file is written")
    stack, ledger = read_stack(stack_file), StackDirectory(tmp_path).ledger()
    stop.set()
    await running

    assert list(stack.processes) == ["job", "server"]
    assert ledger.ready
    assert not stack_file.exists()
    pid = ledger.processes["server"].pid
    assert pid is not None
    assert not psutil.pid_exists(pid)


async def test_one_that_is_not_ready_in_time_is_named_with_its_reason(tmp_path: Path) -> None:
    spec = ProcessSpec("server", (sys.executable, "-c", SLEEPS), probe=Answer("two partitions to go"))

    with pytest.raises(
        LocalStackError,
        match=r"not ready within 0.5 s .*_START_TIMEOUT_S.: server: two partitions to go .log: .*server.log",
    ):
        await supervisor(tmp_path, [spec], start_timeout_s=0.5).run(asyncio.Event())

    assert StackDirectory(tmp_path).ledger().processes["server"].state == "stopped"


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
