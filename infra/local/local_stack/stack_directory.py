"""A stack's directory: its files, the lock of its supervisor, and the ledger of the processes that it started."""

import fcntl
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Literal

import psutil
import structlog
from pydantic import BaseModel, ConfigDict

from local_stack import LocalStackError
from testkit import processes

RUN_VARIABLE = "LOCAL_STACK_RUN"  # of every process of a run, and of its children: the name of the run
SAME_START_S = 1.0

State = Literal["waiting", "starting", "ready", "unready", "done", "restarting", "held", "stopping", "stopped"]
SETTLED: tuple[State, ...] = ("ready", "done")
DOWN: tuple[State, ...] = ("done", "restarting", "held", "stopped")

log = structlog.get_logger()


class Part(BaseModel):
    model_config = ConfigDict(frozen=True)  # a piece of a file about the stack never changes once read


class RunningProcess(Part):
    pid: int | None = None  # None while it does not run
    log: Path


class Entry(RunningProcess):
    state: State = "waiting"
    created: float | None = None  # its start time, in seconds since 1970
    restarts: int = 0
    reason: str = ""  # why it is not ready
    since_start_s: float = 0.0  # from its last start until it last became ready or done


class Ledger(Part):
    """All processes of a run, as its supervisor writes them down for other programs to read and to clean up."""

    run: str = ""  # empty when nothing has run
    supervisor: int = 0
    processes: dict[str, Entry] = {}
    failure: str = ""

    @property
    def ready(self) -> bool:
        return all(entry.state in SETTLED for entry in self.processes.values())

    def end_leftovers(self) -> int:
        """Kills the processes of the run that still live, by their environment or record, and returns how many."""
        running = psutil.process_iter(["environ"]) if self.run else ()
        leftovers = {each for each in running if (each.info["environ"] or {}).get(RUN_VARIABLE) == self.run}
        for entry in self.processes.values():
            members = processes.family(entry.pid) if entry.pid and entry.created else []
            # The start time tells the process from another that got its id.
            if members and abs(members[0].create_time() - (entry.created or 0)) < SAME_START_S:
                leftovers.update(members)
        if leftovers:
            log.warning("ending processes that a killed supervisor left", pids=sorted(each.pid for each in leftovers))
        processes.kill_all(list(leftovers))
        return len(leftovers)


class StackDirectory:
    """The paths of a stack. Two stacks beside each other need two directories and nothing else."""

    def __init__(self, root: Path, data: str = "data") -> None:
        """`data` is the directory in it that survives a restart: each source of orders has its own."""
        self.root = root
        self.stack_file = root / "stack.json"  # where everything is; exists while the stack is ready
        self.ledger_file = root / "processes.json"  # exists from the first process of a run on
        self.lock_file = root / "lock"  # locked by the supervisor for as long as it lives; holds its process id
        self.data = root / data
        self.envoy_file = root / "envoy.yaml"
        self.held = root / "held"  # a file in here, named like a process, keeps that process from running
        self.tls = root / "tls"
        self.logs = root / "logs"

    def log_file(self, process: str) -> Path:
        """Returns the log of a process in this run; the one of the run before ends with `.1`."""
        return self.logs / f"{process}.log"

    def create(self) -> None:
        """Creates the directories. Raises LocalStackError when they cannot be written."""
        try:
            for directory in (self.root, self.data, self.held, self.tls, self.logs):
                directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            tempfile.TemporaryFile(dir=self.root).close()
        except OSError as error:
            problem = f"cannot write to {self.root} ({error.strerror})"
            raise LocalStackError(f"{problem}: set LOCAL_STACK_DIRECTORY to a directory that you own") from error

    def ledger(self) -> Ledger:
        """Reads the ledger; an empty one when there is none."""
        try:
            return Ledger.model_validate_json(self.ledger_file.read_bytes())
        except FileNotFoundError:
            return Ledger()

    def write_ledger(self, ledger: Ledger) -> None:
        write_private(self.ledger_file, ledger.model_dump_json(indent=1))

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Holds the lock, at most until this process ends. Raises LocalStackError when another process holds it."""
        with self.lock_file.open("a+") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                text = f"a stack already runs in {self.root}: see `make status`; `make down` ends it"
                raise LocalStackError(text) from None
            file.truncate(0)
            file.write(str(os.getpid()))
            file.flush()
            yield

    def supervisor_pid(self) -> int | None:
        """Returns the process id of the supervisor that holds the lock; None when there is none."""
        try:
            with suppress(FileNotFoundError), self.lock_file.open("r+") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return int(self.lock_file.read_text() or 0) or None
        return None

    def begin_run(self) -> None:
        """Removes the state files of the run before, and puts the logs of its processes aside."""
        self.forget_run()
        for held in self.held.iterdir():
            held.unlink()
        for name in {log_file.stem for log_file in self.logs.glob("*.log")} - {"supervisor"}:
            self.rotate_log(name)

    def rotate_log(self, process: str) -> None:
        with suppress(FileNotFoundError):
            self.log_file(process).replace(self.logs / f"{process}.log.1")

    def forget_run(self) -> None:
        self.stack_file.unlink(missing_ok=True)
        self.ledger_file.unlink(missing_ok=True)


def write_private(path: Path, text: str) -> None:
    """Replaces the file at once, so that readers see the old text or the new; only the owner may read it."""
    with tempfile.NamedTemporaryFile("w", dir=path.parent, prefix=f".{path.name}.", delete=False) as draft:
        draft.write(text)
    Path(draft.name).replace(path)
