"""Ends what a supervisor left behind that was itself killed, and nothing else."""

from collections.abc import Iterator

import psutil
import structlog

from local_stack import child_process
from local_stack.ledger import Ledger

RUN_VARIABLE = "LOCAL_STACK_RUN"
"""Every process of a run, and what it starts in turn, bears the name of the run in this environment variable."""

SAME_START_S = 1.0

log = structlog.get_logger()


def end_leftovers(ledger: Ledger) -> int:
    """Kills the processes of the run that still live, and returns how many there were.

    A process is of the run when it bears its name; or when it has the recorded id and also the recorded start time,
    for ids are used again.
    """
    found = {process.pid: process for process in (*_recorded(ledger), *_marked(ledger.run))}
    if found:
        log.warning("ending processes that a killed supervisor left", pids=sorted(found))
    child_process.kill_all(list(found.values()))
    return len(found)


def _recorded(ledger: Ledger) -> Iterator[psutil.Process]:
    for entry in ledger.processes.values():
        if entry.pid is None or entry.created is None:
            continue
        try:
            process = psutil.Process(entry.pid)
            if abs(process.create_time() - entry.created) < SAME_START_S:
                yield from (process, *process.children(recursive=True))
        except psutil.NoSuchProcess:
            continue


def _marked(run: str) -> Iterator[psutil.Process]:
    for process in psutil.process_iter():
        try:
            if run and process.environ().get(RUN_VARIABLE) == run:
                yield process
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
