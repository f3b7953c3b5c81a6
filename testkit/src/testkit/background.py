"""Work that goes on in a thread of its own while a block runs."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread


@contextmanager
def in_background(work: Callable[[Event], None]) -> Iterator[None]:
    """Runs `work(done)` until the block ends, which sets `done`; leaves the block when the work has returned."""
    done = Event()
    thread = Thread(target=work, args=(done,))
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def act_at_rate(
    done: Event, rate: float, tick_s: float, act: Callable[[int], None], rest: Callable[[], object]
) -> None:
    """Calls `act` with 0, 1, 2, … at `rate` a second until `done`, and `rest` after each tick of `tick_s` seconds.

    Makes up for calls that a slow machine could not make in time.
    """
    began, acted = time.monotonic(), 0
    while not done.wait(tick_s):
        due = int((time.monotonic() - began) * rate)
        for number in range(acted, due):
            act(number)
        acted = due
        rest()
