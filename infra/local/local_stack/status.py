"""Shows what runs, where, and whether it is ready."""

import psutil
from rich.console import Console, Group, RenderableType
from rich.table import Column, Table

from local_stack.settings import Settings
from local_stack.stack_directory import Ledger, StackDirectory
from local_stack.stack_file import Stack, read_stack
from testkit.processes import family

READY, NOT_READY, NOT_RUNNING = 0, 1, 3
"""The exit statuses of `local-stack status`."""

MIB = 1024 * 1024
STYLES = {"ready": "green", "done": "green", "held": "yellow", "restarting": "red", "unready": "red"}


def show_status(settings: Settings, console: Console) -> int:
    """Prints the state of the stack and returns the exit status."""
    directory = StackDirectory(settings.directory)
    ledger = directory.ledger()
    if directory.supervisor_pid() is None:
        console.print(f"nothing runs in {directory.root}")
        if ledger and ledger.failure:
            console.print(f"the last stack ended because {ledger.failure}", markup=False)
        return NOT_RUNNING
    if ledger is None:
        console.print(f"the stack in {directory.root} is starting")
        return NOT_READY
    console.print(_processes(ledger))
    if not directory.stack_file.exists():
        return NOT_READY
    console.print(addresses(read_stack(directory.stack_file)))
    return READY if ledger.ready else NOT_READY


def addresses(stack: Stack) -> RenderableType:
    """Where to reach the stack, and as whom."""
    grid = Table.grid(padding=(0, 2))
    gateway = stack.gateway
    grid.add_row("gateway", f"{gateway.https}  {gateway.wss}  {gateway.http}  {gateway.ws}")
    grid.add_row("pages", f"{gateway.http}/  {gateway.http}/operator")
    grid.add_row("trust", str(gateway.ca_certificate))
    for name, user in stack.credentials.items():
        if user.basic:
            groups = ", ".join(user.groups)
            grid.add_row("log in as", f"{user.basic.username} / {user.basic.password}  ({name}: {groups})")
    grid.add_row("kafka", stack.kafka.bootstrap)
    grid.add_row("queries", "  ".join(query.address for query in stack.queries))
    grid.add_row("all of it", str(stack.directory / "stack.json"))
    return Group("", grid)


def memory_mib(pid: int | None, *, children: bool = True) -> float:
    """The resident memory of the process and of all it started, in MiB; 0 when it does not run."""
    members = family(pid) if pid is not None else []
    try:
        return sum(process.memory_info().rss for process in members[: None if children else 1]) / MIB
    except psutil.NoSuchProcess:
        return 0.0


def _processes(ledger: Ledger) -> Table:
    right = [Column(text, justify="right") for text in ("pid", "restarts", "memory")]
    table = Table("process", "state", *right, "", box=None, pad_edge=False)
    total = supervisor = memory_mib(ledger.supervisor, children=False)
    for name, entry in ledger.processes.items():
        memory = memory_mib(entry.pid)
        total += memory
        state = f"[{STYLES.get(entry.state, 'cyan')}]{entry.state}[/]"
        shown = f"{memory:.0f} MiB" if memory else ""
        note = entry.reason or f"after {entry.since_start_s:.1f} s"
        table.add_row(name, state, str(entry.pid or ""), str(entry.restarts or ""), shown, note)
    table.add_row("supervisor", "", str(ledger.supervisor), "", f"{supervisor:.0f} MiB", "")
    table.add_row("total", "", "", "", f"{total:.0f} MiB", "", style="bold")
    return table
