"""Runs the demo: starts a stack unless one runs, shows changes behind its gateway, and ends a stack of its own."""

import asyncio
import shutil
import sys
import termios
import time
import tty
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack, contextmanager

from rich.console import Console
from rich.live import Live

from local_stack.demo_board import Board, batch_line, draw
from local_stack.demo_lines import ORDERS, ROWS
from local_stack.demo_watches import Clock, following
from local_stack.domains import FIRST
from local_stack.running_stack import RunningStack, running_stack
from local_stack.settings import PROGRAMS, Settings
from local_stack.stack_file import Stack

LINES_EVERY_S = 1.0
FRAMES_PER_S = 8

CANCEL = (
    "UPDATE orders SET status = 'cancelled', updated_at = now() WHERE order_id = "
    "(SELECT max(order_id) FROM orders WHERE customer_id = 'customer-0001' AND status <> 'cancelled')"
)
RUN_SQL = "import psycopg, sys; psycopg.connect(sys.argv[1], autocommit=True).execute(sys.argv[2])"

Sleep = Callable[[float], Awaitable[None]]


def run_demo(settings: Settings, console: Console) -> int:
    """Shows the demo and returns its exit status: 0 when updates came, else 1. A stack that ran before stays."""
    with ExitStack() as ending:
        running = RunningStack(settings.files)
        if running.directory.supervisor_pid() is None:
            console.print("starting the stack; it ends with the demo")
            ending.enter_context(running_stack(settings, console.print))
            ending.callback(console.print, "ending the stack")
        running.wait_announced(settings.start_timeout_s)
        stack = running.file
        console.print(f"{', '.join(stack.domains)} on a page: {stack.gateway.http}/", soft_wrap=True, markup=False)
        if stack.database:
            console.print(sql_hint(stack.database.url), soft_wrap=True, markup=False)
        return asyncio.run(_show(stack, settings, console))


def sql_hint(url: str) -> str:
    """Returns a shell command that cancels an order of the first customer in the database, with an explanation."""
    program = "psql" if shutil.which("psql") else f'{PROGRAMS / "python"} -c "{RUN_SQL}"'
    option = " -c" if program == "psql" else ""
    return f'change an order, here and on the page, from another shell:\n{program} {url}{option} "{CANCEL}"'


async def _show(stack: Stack, settings: Settings, console: Console) -> int:
    hint = sql_hint(stack.database.url) if stack.database else ""
    board = Board(ORDERS if stack.domains == (FIRST,) else ROWS, since_s=time.time(), hint=hint)
    async with following(stack, board, time.time):
        if console.is_terminal:
            await _draw_live(board, stack, settings.demo_s, console)
        else:
            await print_lines(board, settings.demo_lines_s, console, time.time)
    return 0 if board.updates else 1


async def _draw_live(board: Board, stack: Stack, length_s: float, console: Console) -> None:
    end = time.monotonic() + length_s
    address = f"{stack.gateway.http}/  {stack.gateway.wss}/v1/stream"
    with key_pressed() as pressed, Live(console=console, screen=True, auto_refresh=False) as live:
        while not pressed.is_set() and time.monotonic() < end:
            view = draw(board, address, end - time.monotonic(), time.time(), console.height)
            live.update(view, refresh=True)
            await asyncio.sleep(1 / FRAMES_PER_S)


async def print_lines(
    board: Board, length_s: float, console: Console, clock: Clock, sleep: Sleep = asyncio.sleep
) -> None:
    """Prints a line for each second with updates, for `length_s` from the first on, or says that none came in it."""
    end = clock() + length_s
    while (printed := clock()) < end:
        updates = board.updates
        await sleep(LINES_EVERY_S)
        if changed := board.changed_after(printed):
            console.print(batch_line(board.kind.noun, changed, clock()), soft_wrap=True, markup=False)
            end = end if updates else clock() + length_s
    if not board.updates:
        console.print(f"no update came within {length_s:g} s. {board.problem}", markup=False)
        return
    median, slowest = board.ages()
    console.print(f"{board.updates} updates; commit to client: median {median}, slowest {slowest}")


@contextmanager
def key_pressed() -> Iterator[asyncio.Event]:
    """Yields an event that is set once any key is pressed; without a terminal to read from it never is."""
    pressed, loop = asyncio.Event(), asyncio.get_running_loop()
    with ExitStack() as ending:
        if sys.stdin.isatty():
            ending.callback(termios.tcsetattr, sys.stdin, termios.TCSADRAIN, termios.tcgetattr(sys.stdin))
            ending.callback(termios.tcflush, sys.stdin, termios.TCIFLUSH)
            tty.setcbreak(sys.stdin)
            loop.add_reader(sys.stdin, pressed.set)
            ending.callback(loop.remove_reader, sys.stdin)
        yield pressed
