"""The demo: starts a stack unless one runs, shows orders changing behind its gateway, and ends what it started."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager

from rich.console import Console
from rich.live import Live

from local_stack import run_lock
from local_stack.demo_board import Board
from local_stack.demo_feed import DemoFeed, follow_shards
from local_stack.demo_lines import print_lines
from local_stack.demo_view import draw
from local_stack.gateway_client import GatewayClient
from local_stack.key_press import key_pressed
from local_stack.running_stack import RunningStack, running_stack
from local_stack.settings import Settings
from local_stack.stack_directory import StackDirectory
from local_stack.stack_file import Stack

SEEN, NOTHING_SEEN = 0, 1
OPERATOR_WATCHES = tuple(f"customer-{number:04}" for number in range(3, 11))
FRAMES_PER_S = 8


def run_demo(settings: Settings, console: Console) -> int:
    """Shows the demo and returns 0 when updates came. A stack that ran before is left running."""
    directory = StackDirectory(settings.directory.absolute())
    if run_lock.holder(directory.lock) is not None:
        running = RunningStack(directory)
        running.wait_announced(settings.start_timeout_s)
        return asyncio.run(_show(running.file, settings, console))
    console.print("starting the stack; it ends with the demo")
    with running_stack(settings, console.print) as started:
        result = asyncio.run(_show(started.file, settings, console))
        console.print("ending the stack")
    return result


async def _show(stack: Stack, settings: Settings, console: Console) -> int:
    board = Board()
    async with _feeding(stack, board, time.time):
        if console.is_terminal:
            await _draw_live(board, stack, settings.demo_s, console)
            return SEEN if board.updates else NOTHING_SEEN
        seen = await print_lines(board, settings.demo_lines_s, console, time.time)
        return SEEN if seen else NOTHING_SEEN


@asynccontextmanager
async def _feeding(stack: Stack, board: Board, clock: Callable[[], float]) -> AsyncIterator[None]:
    async with AsyncExitStack() as clients:
        tasks = []
        for name, user in stack.credentials.items():
            if user.basic is None:
                continue
            client = await clients.enter_async_context(GatewayClient(stack, user))
            customers = (user.customer_id,) if user.customer_id else OPERATOR_WATCHES
            tasks.append(asyncio.create_task(DemoFeed(client, name, customers, board, clock).run()))
            if not user.customer_id:
                tasks.append(asyncio.create_task(follow_shards(client, board)))
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


async def _draw_live(board: Board, stack: Stack, length_s: float, console: Console) -> None:
    end = time.monotonic() + length_s
    where = f"{stack.gateway.http}/  {stack.gateway.wss}/update/orders"
    with key_pressed() as pressed, Live(console=console, screen=True, auto_refresh=False) as live:
        while not pressed.is_set() and time.monotonic() < end:
            view = draw(board, where, end - time.monotonic(), time.time(), console.height)
            live.update(view, refresh=True)
            await asyncio.sleep(1 / FRAMES_PER_S)
