"""The command `local-stack`: starts, shows, demonstrates and ends the whole of Statecast on this machine."""

import argparse
import shutil
import signal
import sys
from collections.abc import Sequence

import psutil
from rich.console import Console, Group, RenderableType
from rich.table import Column, Table
from rich.text import Text

from local_stack.demo import run_demo
from local_stack.running_stack import run_stack, start_stack, stop_stack
from local_stack.settings import Settings
from local_stack.specs import whole_stack
from local_stack.stack_directory import Ledger, StackDirectory
from local_stack.stack_file import Stack, read_stack
from statecast_service.build import add_version
from statecast_service.errors import ServiceError
from statecast_service.logs import configure_logs
from statecast_service.settings import load_settings
from testkit import processes

INTERRUPTED, TERMINATED = 130, 143
READY, NOT_READY, NOT_RUNNING = 0, 1, 3  # the exit statuses of `local-stack status`
STYLES = {"ready": "green", "done": "green", "held": "yellow", "restarting": "red", "unready": "red"}
COMMANDS = {
    "up": "start the stack in the background and wait until it is ready",
    "down": "end the stack and everything that it started",
    "status": "show what runs, where, and whether it is ready",
    "demo": "show orders changing live behind the gateway",
    "run": "run the stack in the foreground until Ctrl-C",
}


def main() -> None:
    """Runs the command of the arguments and exits: 0 well, 1 failed, 2 a bad setting; see the README for `status`."""
    parser = argparse.ArgumentParser(prog="local-stack", description=__doc__)
    add_version(parser, "statecast-infra")
    commands = parser.add_subparsers(dest="command", required=True)
    parsers = {name: commands.add_parser(name, help=text) for name, text in COMMANDS.items()}
    parsers["down"].add_argument("--wipe", action="store_true", help="remove its data too")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(TERMINATED))
    try:
        sys.exit(_run(arguments, load_settings(Settings), Console(highlight=False)))
    except ServiceError as error:
        Console(stderr=True).print(f"local-stack: {error}", style="red", markup=False, highlight=False, soft_wrap=True)
        sys.exit(error.exit_status)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


def _run(arguments: argparse.Namespace, settings: Settings, console: Console) -> int:
    match arguments.command:
        case "up":
            start_stack(settings, processes.start_detached, console.print)
            console.print(addresses(read_stack(settings.files.stack_file)))
        case "down":
            ended = stop_stack(settings)
            console.print("the stack has ended" if ended else f"nothing runs in {settings.directory}")
            if arguments.wipe:
                shutil.rmtree(settings.files.data, ignore_errors=True)
                console.print(f"removed {settings.files.data}")
        case "status":
            return show_status(settings.files, console)
        case "demo":
            return run_demo(settings, console)
        case _:
            configure_logs()
            run_stack(settings, whole_stack)
    return 0


def show_status(directory: StackDirectory, console: Console) -> int:
    """Prints the state of the stack and returns the exit status."""
    ledger = directory.ledger()
    if directory.supervisor_pid() is None:
        console.print(f"nothing runs in {directory.root}")
        if ledger.failure:
            console.print(f"the last stack ended because {ledger.failure}", markup=False)
        return NOT_RUNNING
    if not ledger.run:
        console.print(f"the stack in {directory.root} is starting")
        return NOT_READY
    console.print(_processes(ledger))
    if announced := directory.stack_file.exists():
        console.print(addresses(read_stack(directory.stack_file)))
    return READY if announced and ledger.ready else NOT_READY


def addresses(stack: Stack) -> RenderableType:
    grid, gateway = Table.grid(padding=(0, 2)), stack.gateway
    grid.add_row("gateway", f"{gateway.https}  {gateway.wss}  {gateway.http}  {gateway.ws}")
    grid.add_row("pages", f"{gateway.http}/  {gateway.http}/operator")
    grid.add_row("trust", str(gateway.ca_certificate))
    for name, user in stack.credentials.items():
        if user.basic:
            login = f"{user.basic.username} / {user.basic.password}"
            grid.add_row("log in as", f"{login}  ({name}: {', '.join(user.groups)})")
    grid.add_row("kafka", stack.kafka.bootstrap)
    if stack.database:
        grid.add_row("database", stack.database.url)
    grid.add_row("queries", "  ".join(query.address for query in stack.queries))
    grid.add_row("all of it", str(stack.directory / "stack.json"))
    return Group("", grid)


def memory_mib(members: Sequence[psutil.Process]) -> float:
    """Returns the resident memory of the processes, in MiB; 0 when one of them has ended."""
    try:
        return sum(process.memory_info().rss for process in members) / 2**20
    except psutil.NoSuchProcess:
        return 0.0


def _processes(ledger: Ledger) -> Table:
    right = [Column(text, justify="right") for text in ("pid", "restarts", "memory")]
    table = Table("process", "state", *right, "", box=None, pad_edge=False)
    total = supervisor = memory_mib(processes.family(ledger.supervisor)[:1])
    for name, entry in ledger.processes.items():
        total += (memory := memory_mib(processes.family(entry.pid) if entry.pid else []))
        state = Text(entry.state, STYLES.get(entry.state, "cyan"))
        figures = (str(entry.pid or ""), str(entry.restarts or ""), f"{memory:.0f} MiB" if memory else "")
        table.add_row(name, state, *figures, entry.reason or f"after {entry.since_start_s:.1f} s")
    table.add_row("supervisor", "", str(ledger.supervisor), "", f"{supervisor:.0f} MiB", "")
    table.add_row("total", "", "", "", f"{total:.0f} MiB", "", style="bold")
    return table


if __name__ == "__main__":
    main()
