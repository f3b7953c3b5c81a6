"""Tells of updates line by line, for when there is no terminal."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime

from rich.console import Console

from local_stack.demo_board import Board
from local_stack.demo_view import milliseconds

EVERY_S = 1.0
NAMED = 3

Sleep = Callable[[float], Awaitable[None]]


async def print_lines(
    board: Board, length_s: float, console: Console, clock: Callable[[], float], sleep: Sleep = asyncio.sleep
) -> bool:
    """Prints a line for each second in which updates came, for `length_s` from the first update on.

    Returns false when none came within `length_s`. `clock` gives unix seconds.
    """
    told = clock()
    end = told + length_s
    first = True
    while clock() < end:
        await sleep(EVERY_S)
        now = clock()
        if board.changed_since(told):
            console.print(batch_line(board, told, now), soft_wrap=True, markup=False)
            end, first = (now + length_s, False) if first else (end, False)
        told = now
    if not board.updates:
        console.print(f"no update came within {length_s:g} s. {board.problem}", markup=False)
        return False
    console.print(
        f"{board.updates} updates; commit to client: median {milliseconds(board.median_age_s)},"
        f" slowest {milliseconds(board.highest_age_s)}"
    )
    return True


def batch_line(board: Board, since: float, now: float) -> str:
    """One line about the orders that changed after `since`."""
    changed = board.changed_since(since)
    named = ", ".join(f"{line.update.order_id} {line.update.status}" for line in changed[-NAMED:])
    more = f" and {len(changed) - NAMED} more" if len(changed) > NAMED else ""
    at = datetime.fromtimestamp(now, UTC).strftime("%H:%M:%S")
    ages = [line.age_s for line in changed if line.age_s is not None]
    slowest = milliseconds(max(ages, default=None))
    return f"{at}  {len(changed):3} orders changed, slowest after {slowest}: {named}{more}"
