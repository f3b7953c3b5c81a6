"""Shows what runs, where, and whether it is ready."""

import psutil
from rich.console import Console, Group, RenderableType
from rich.table import Table

from local_stack import run_lock
from local_stack.ledger import Entry, Ledger, read_ledger
from local_stack.settings import Settings
from local_stack.stack_directory import StackDirectory
from local_stack.stack_file import Stack, read_stack

READY, NOT_READY, NOT_RUNNING = 0, 1, 3
"""The exit statuses of `local-stack status`."""

MIB = 1024 * 1024
STYLES = {"ready": "green", "done": "green", "held": "yellow", "restarting": "red", "unready": "red"}


def show_status(settings: Settings, console: Console) -> int:
    """Prints the state of the stack and returns the exit status."""
    directory = StackDirectory(settings.directory.absolute())
    ledger = read_ledger(directory.ledger)
    if run_lock.holder(directory.lock) is None:
        console.print(f"nothing runs in {directory.root}")
        if ledger and ledger.failure:
            console.print(f"the last stack ended because {ledger.failure}", markup=False)
        return NOT_RUNNING
    if ledger is None:
        console.print(f"the stack in {directory.root} is starting")
        return NOT_READY
    console.print(_processes(ledger))
    if directory.stack_file.exists():
        console.print(addresses(read_stack(directory.stack_file)))
    return READY if ledger.ready and directory.stack_file.exists() else NOT_READY


def addresses(stack: Stack) -> RenderableType:
    """Where to reach the stack, and as whom."""
    grid = Table.grid(padding=(0, 2))
    gateway = stack.gateway
    grid.add_row("gateway", f"{gateway.https}  {gateway.wss}  {gateway.http}  {gateway.ws}")
    grid.add_row("pages", f"{gateway.http}/  {gateway.http}/operator")
    grid.add_row("trust", str(gateway.ca_certificate))
    for name, user in stack.credentials.items():
        if user.basic:
            who = ", ".join(user.groups)
            grid.add_row("log in as", f"{user.basic.username} / {user.basic.password}  ({name}: {who})")
    grid.add_row("kafka", stack.kafka.bootstrap)
    grid.add_row("queries", "  ".join(query.address for query in stack.queries))
    grid.add_row("all of it", str(stack.directory / "stack.json"))
    return Group("", grid)


def memory_mib(pid: int | None) -> float:
    """The resident memory of the process and of all it started, in MiB; 0 when it does not run."""
    if pid is None:
        return 0.0
    try:
        process = psutil.Process(pid)
        family = [process, *process.children(recursive=True)]
        return sum(each.memory_info().rss for each in family) / MIB
    except psutil.NoSuchProcess:
        return 0.0


def _processes(ledger: Ledger) -> Table:
    table = Table(box=None, pad_edge=False)
    for column in ("process", "state", "pid", "restarts", "memory", ""):
        table.add_column(column, justify="right" if column in ("pid", "restarts", "memory") else "left")
    total = 0.0
    for name, entry in ledger.processes.items():
        memory = memory_mib(entry.pid)
        total += memory
        table.add_row(*_cells(name, entry, memory))
    supervisor = memory_mib_alone(ledger.supervisor)
    table.add_row("supervisor", "", str(ledger.supervisor), "", f"{supervisor:.0f} MiB", "")
    table.add_row("total", "", "", "", f"{total + supervisor:.0f} MiB", "", style="bold")
    return table


def memory_mib_alone(pid: int) -> float:
    """The resident memory of the process without what it started, in MiB."""
    return float(psutil.Process(pid).memory_info().rss / MIB) if psutil.pid_exists(pid) else 0.0


def _cells(name: str, entry: Entry, memory: float) -> tuple[str, ...]:
    style = STYLES.get(entry.state, "cyan")
    note = entry.reason or f"after {entry.since_start_s:.1f} s"
    return (
        name,
        f"[{style}]{entry.state}[/]",
        str(entry.pid or ""),
        str(entry.restarts or ""),
        f"{memory:.0f} MiB" if memory else "",
        note,
    )
