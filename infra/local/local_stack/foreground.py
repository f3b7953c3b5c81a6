"""Runs a stack in this process until a signal ends it: the supervisor's side of every command."""

import asyncio
import os
import secrets
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import httpx

from local_stack import run_lock
from local_stack.certificates import Certificates
from local_stack.demo_users import read_demo_users
from local_stack.errors import LocalStackError
from local_stack.gateway import KONG_FILE, Gateway
from local_stack.ledger import Ledger, read_ledger, write_private
from local_stack.leftovers import end_leftovers
from local_stack.ports import assign_ports
from local_stack.process_table import ProcessTable
from local_stack.settings import Settings
from local_stack.stack_directory import StackDirectory
from local_stack.stack_text import StackText
from local_stack.supervisor import Supervisor

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def run_stack(settings: Settings) -> None:
    """Starts everything, and returns when a signal has ended it and nothing is left.

    Raises LocalStackError: the directory is not usable, a stack already runs, a port is taken, a process keeps ending.
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
            asyncio.run(_supervise(with_ports, directory))
        except LocalStackError as error:
            _note_failure(directory, str(error))
            raise
        directory.forget_run()


def _note_failure(directory: StackDirectory, failure: str) -> None:
    ledger = read_ledger(directory.ledger) or Ledger(run="", supervisor=os.getpid(), processes={})
    write_private(directory.ledger, ledger.model_copy(update={"failure": failure}).model_dump_json(indent=1))


async def _supervise(settings: Settings, directory: StackDirectory) -> None:
    loop = asyncio.get_running_loop()
    loop.set_default_executor(ThreadPoolExecutor(max_workers=16))
    stop = asyncio.Event()
    for each in STOP_SIGNALS:
        loop.add_signal_handler(each, stop.set)
    async with httpx.AsyncClient(trust_env=False) as client:
        await _supervisor(settings, directory, client).run(stop)


def _supervisor(settings: Settings, directory: StackDirectory, client: httpx.AsyncClient) -> Supervisor:
    certificates = Certificates(directory.tls)
    certificates.ensure(datetime.now(UTC))
    users = read_demo_users(KONG_FILE)
    secret = secrets.token_urlsafe(32)
    operator = next(user for user in users.values() if "staff" in user.groups)
    gateway = Gateway(directory.root, settings, certificates, secret, operator)
    specs = ProcessTable(settings, directory, gateway, secret, client).specs()
    text = StackText(settings, certificates.authority, users)
    return Supervisor(specs, directory, settings, secrets.token_hex(8), text, time.monotonic)
