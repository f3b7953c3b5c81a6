"""The directory of one stack: where its data, logs, certificates and state files are."""

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from local_stack.errors import DirectoryError


@dataclass(frozen=True)
class StackDirectory:
    """The paths of a stack. Two stacks beside each other need two directories and nothing else."""

    root: Path

    @property
    def stack_file(self) -> Path:
        """Where everything is, for people and programs; exists while the stack is ready."""
        return self.root / "stack.json"

    @property
    def ledger(self) -> Path:
        """What the supervisor has started and in which state it is; exists from its first process on."""
        return self.root / "processes.json"

    @property
    def lock(self) -> Path:
        """Locked by the supervisor for as long as it lives; holds its process id."""
        return self.root / "lock"

    @property
    def data(self) -> Path:
        """What survives a restart: Kafka's log, the orders table, checkpoints, stores."""
        return self.root / "data"

    @property
    def held(self) -> Path:
        """A file in here, named like a process, keeps that process from running."""
        return self.root / "held"

    @property
    def tls(self) -> Path:
        """The certificates of the gateway."""
        return self.root / "tls"

    def log(self, process: str) -> Path:
        """The log of a process in this run; the one of the run before ends with `.1`."""
        return self.root / "logs" / f"{process}.log"

    def create(self) -> None:
        """Makes the directories. Raises DirectoryError when they cannot be written."""
        try:
            for directory in (self.root, self.data, self.held, self.tls, self.root / "logs"):
                directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            probe = self.root / f".writable-{os.getpid()}"
            probe.touch()
            probe.unlink()
        except OSError as error:
            raise DirectoryError(
                f"cannot write to {self.root} ({error.strerror}): set LOCAL_STACK_DIRECTORY to a directory that you own"
            ) from error

    def begin_run(self) -> None:
        """Forgets the state files of the run before, and puts the logs of its processes aside."""
        self.forget_run()
        for held in self.held.iterdir():
            held.unlink()
        for log in self.log("any").parent.glob("*.log"):
            if log.stem != "supervisor":
                self.put_log_aside(log.stem)

    def put_log_aside(self, process: str) -> None:
        """Renames the log of a process, so that the next run begins a new one."""
        log = self.log(process)
        if log.exists():
            log.replace(log.with_suffix(".log.1"))

    def forget_run(self) -> None:
        """Removes the state files of a run that has ended."""
        self.stack_file.unlink(missing_ok=True)
        self.ledger.unlink(missing_ok=True)

    def wipe(self) -> None:
        """Removes the data. Nothing may be running."""
        shutil.rmtree(self.data, ignore_errors=True)
