"""Runs a stack in this process until a signal ends it: the supervisor's side of every command."""

import asyncio
import os
import secrets
import signal
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import httpx

from local_stack import run_lock
from local_stack.errors import LocalStackError
from local_stack.ledger import Ledger, read_ledger, write_private
from local_stack.leftovers import end_leftovers
from local_stack.ports import assign_ports
from local_stack.process_spec import ProcessSpec
from local_stack.settings import Settings
from local_stack.stack_directory import StackDirectory
from local_stack.supervisor import StackText, Supervisor

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
THREADS = 16  # as many processes may be asked, prepared or stopped at once

Plan = Callable[[Settings, StackDirectory, httpx.AsyncClient], tuple[Sequence[ProcessSpec], StackText]]
"""Decides what runs, given settings with a port for every server; see `whole_stack`."""


def run_stack(settings: Settings, plan: Plan) -> None:
    """Starts everything, and returns when a signal has ended it and nothing is left. Call it in the main thread.

    Raises LocalStackError: the directory is not usable, a stack already runs, a port is taken, a process keeps ending.
    The ledger then holds the failure for others to read.
    """
    directory = StackDirectory(settings.directory.absolute())
    directory.create()
    with run_lock.hold(directory.lock):
        left = read_ledger(directory.ledger)
        if left:
            end_leftovers(left)
        directory.begin_run()
        try:
            with_ports = settings.model_copy(update={**assign_ports(settings), "directory": directory.root})
            asyncio.run(_supervise(with_ports, directory, plan))
        except LocalStackError as error:
            _note_failure(directory, str(error))
            raise
        directory.forget_run()


async def _supervise(settings: Settings, directory: StackDirectory, plan: Plan) -> None:
    loop = asyncio.get_running_loop()
    loop.set_default_executor(ThreadPoolExecutor(THREADS))
    stop = asyncio.Event()
    for each in STOP_SIGNALS:
        loop.add_signal_handler(each, stop.set)
    async with httpx.AsyncClient(trust_env=False) as client:
        specs, stack_text = plan(settings, directory, client)
        supervisor = Supervisor(specs, directory, settings, secrets.token_hex(8), stack_text, time.monotonic)
        await supervisor.run(stop)


def _note_failure(directory: StackDirectory, failure: str) -> None:
    ledger = read_ledger(directory.ledger) or Ledger(run="", supervisor=os.getpid(), processes={})
    write_private(directory.ledger, ledger.model_copy(update={"failure": failure}).model_dump_json(indent=1))
