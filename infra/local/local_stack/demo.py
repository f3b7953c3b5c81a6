"""The demo: starts a stack unless one runs, shows orders changing behind its gateway, and ends what it started."""

import asyncio
import shutil
import ssl
import sys
import termios
import time
import tty
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, contextmanager

import httpx
from google.protobuf import json_format
from rich.console import Console
from rich.live import Live

from local_stack.demo_board import Board, OrderLine, batch_line, draw
from local_stack.running_stack import RunningStack, running_stack
from local_stack.settings import PROGRAMS, Settings
from local_stack.stack_file import Stack
from statecast.orders.v1.order_pb2 import Order
from statecast.push.v1.range_pb2 import Range, RangeChanged
from statecast.query.v1.query_service_pb2 import ListShardsResponse
from statecast_client.push import PushClient

OPERATOR_WATCHES = tuple(f"customer-{number:04}" for number in range(3, 11))
ORDERS_PER_CUSTOMER = 20
INTERVAL_MS = 100
SHARDS_EVERY_S = LINES_EVERY_S = 1.0
FRAMES_PER_S = 8

CANCEL = (
    "UPDATE orders SET status = 'cancelled', updated_at = now() WHERE order_id = "
    "(SELECT max(order_id) FROM orders WHERE customer_id = 'customer-0001' AND status <> 'cancelled')"
)
RUN_SQL = "import psycopg, sys; psycopg.connect(sys.argv[1], autocommit=True).execute(sys.argv[2])"

Clock = Callable[[], float]  # tells the time, in unix seconds
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
        if stack.database:
            console.print(sql_hint(stack.database.url), soft_wrap=True, markup=False)
        return asyncio.run(_show(stack, settings, console))


def sql_hint(url: str) -> str:
    """The line for a shell that cancels an order of the first customer in the database, and what it is for."""
    program = "psql" if shutil.which("psql") else f'{PROGRAMS / "python"} -c "{RUN_SQL}"'
    option = " -c" if program == "psql" else ""
    return f'change an order, here and on the page, from another shell:\n{program} {url}{option} "{CANCEL}"'


async def _show(stack: Stack, settings: Settings, console: Console) -> int:
    board = Board(since_s=time.time(), hint=sql_hint(stack.database.url) if stack.database else "")
    async with following(stack, board, time.time):
        if console.is_terminal:
            await _draw_live(board, stack, settings.demo_s, console)
        else:
            await print_lines(board, settings.demo_lines_s, console, time.time)
    return 0 if board.updates else 1


@asynccontextmanager
async def following(stack: Stack, board: Board, clock: Clock) -> AsyncIterator[None]:
    """Feeds the board during the block with what each demo user with a password and a key may see."""
    trust = ssl.create_default_context(cafile=stack.gateway.ca_certificate)
    async with AsyncExitStack() as clients:
        tasks = []
        for name, user in stack.credentials.items():
            if not (user.basic and user.key):
                continue
            headers = user.headers
            push = PushClient(f"{stack.gateway.wss}/v1/stream", credentials=headers, tls=trust)
            await clients.enter_async_context(push)
            customers = (user.customer_id,) if user.customer_id else OPERATOR_WATCHES
            tasks += [asyncio.create_task(_follow_orders(push, each, name, board, clock)) for each in customers]
            if not user.customer_id:
                http = httpx.AsyncClient(base_url=stack.gateway.https, headers=headers, verify=trust, trust_env=False)
                tasks.append(asyncio.create_task(_follow_shards(await clients.enter_async_context(http), board)))
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


async def _follow_orders(client: PushClient, customer: str, seen_by: str, board: Board, clock: Clock) -> None:
    watched = Range(store="orders-by-customer", group=customer, limit=ORDERS_PER_CUSTOMER, reverse=True)
    try:
        async for change in await client.watch_range(watched, interval_ms=INTERVAL_MS):
            order = Order()
            if isinstance(change, RangeChanged) and change.row.Unpack(order):
                board.apply(OrderLine(order, seen_by, change.commit_time.ToNanoseconds() / 1e9), clock())
    except Exception as error:  # noqa: BLE001  whatever ends the task is shown on the board
        board.problem = f"{seen_by}: {error}"


async def _follow_shards(client: httpx.AsyncClient, board: Board) -> None:
    while True:
        try:
            response = (await client.get("/v1/shards")).raise_for_status()
            shard_map = json_format.Parse(response.content, ListShardsResponse(), ignore_unknown_fields=True)
            board.shards, board.problem = shard_map.shards, ""
        except (httpx.HTTPError, json_format.ParseError) as error:
            board.problem = f"shards: {error}"
        await asyncio.sleep(SHARDS_EVERY_S)


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
            console.print(batch_line(changed, clock()), soft_wrap=True, markup=False)
            end = end if updates else clock() + length_s
    if not board.updates:
        console.print(f"no update came within {length_s:g} s. {board.problem}", markup=False)
        return
    median, slowest = board.ages()
    console.print(f"{board.updates} updates; commit to client: median {median}, slowest {slowest}")


@contextmanager
def key_pressed() -> Iterator[asyncio.Event]:
    """An event that is set once any key is pressed; without a terminal to read from it never is."""
    pressed, loop = asyncio.Event(), asyncio.get_running_loop()
    with ExitStack() as ending:
        if sys.stdin.isatty():
            ending.callback(termios.tcsetattr, sys.stdin, termios.TCSADRAIN, termios.tcgetattr(sys.stdin))
            ending.callback(termios.tcflush, sys.stdin, termios.TCIFLUSH)
            tty.setcbreak(sys.stdin)
            loop.add_reader(sys.stdin, pressed.set)
            ending.callback(loop.remove_reader, sys.stdin)
        yield pressed
