"""The supervisor's book of the processes it started, on disk so that other programs can read and clean up."""

import os
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict

State = Literal["waiting", "starting", "ready", "unready", "done", "restarting", "held", "stopping", "stopped"]


class Entry(BaseModel):
    """One process. `pid` is None while it does not run; `reason` says why it is not ready.

    `since_start_s` is the time from its last start to its last becoming ready or done.
    """

    model_config = ConfigDict(frozen=True)

    state: State = "waiting"
    pid: int | None = None
    created: float | None = None
    restarts: int = 0
    reason: str = ""
    log: Path
    since_start_s: float = 0.0


class Ledger(BaseModel):
    """All processes of a run. Each of them bears `run` in its environment, as LOCAL_STACK_RUN."""

    model_config = ConfigDict(frozen=True)

    run: str
    supervisor: int
    processes: dict[str, Entry]
    failure: str = ""

    @property
    def ready(self) -> bool:
        """Whether every process is ready, or has done its work."""
        return all(entry.state in ("ready", "done") for entry in self.processes.values())


def read_ledger(path: Path) -> Ledger | None:
    """Reads the ledger; None when there is none."""
    try:
        return Ledger.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        return None


def write_private(path: Path, text: str) -> None:
    """Replaces the file at once, so that readers see the old text or the new; only the owner may read it."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(text)
    draft.replace(path)
