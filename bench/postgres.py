"""Measures how fresh clients are with orders in PostgreSQL, and writes results/postgres.json: `make bench-postgres`."""

import asyncio
import statistics
import sys
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from drivers.gateway_client import client_of, gateway_of
from drivers.order_watchers import OrderWatchers

from bench.lookups import known_orders
from bench.results import Measured, Suite, measure_each, percentiles, repeat
from local_stack.running_stack import RunningStack, running_stack
from local_stack.settings import Settings

RATE = 200
ORDERS = 2_000
WATCHED = 300
INTERVAL_MS = 100
MEASURE_S = 20.0
SETTLE_S = 180.0
SETTLED_S = 2.0
SETTLED_MS = 1_000


def commit_to_client(stack: RunningStack) -> dict[str, float]:
    """From the commit in PostgreSQL until a client behind the gateway has the frame, in milliseconds.

    The commit's time is PostgreSQL's own. Raises TimeoutError when frames still come late after SETTLE_S.
    """
    with _watching_newest(stack) as watchers:
        _settle(watchers)
    # An order changes a few times in some tens of seconds and then rests: those of before may have come to their end.
    with _watching_newest(stack) as watchers:
        time.sleep(MEASURE_S)
        ages_ms = list(watchers.ages_ms)
    return percentiles("commit_to_client_ms", ages_ms, f".postgres_interval_{INTERVAL_MS}")


def _watching_newest(stack: RunningStack) -> OrderWatchers:
    watched = _orders_to_watch(stack.file.queries[0].address)
    return OrderWatchers(gateway_of(stack), client_of(stack, "operator"), watched, INTERVAL_MS)


def _orders_to_watch(address: str) -> list[str]:
    """Waits until the snapshot has come so far. Raises LookupError when it has not after SETTLE_S."""
    deadline = time.monotonic() + SETTLE_S
    while True:
        try:
            return asyncio.run(known_orders(address, WATCHED))
        except LookupError:
            if time.monotonic() > deadline:
                raise
            time.sleep(1)


def _settle(watchers: OrderWatchers) -> None:
    deadline = time.monotonic() + SETTLE_S
    while time.monotonic() < deadline:
        watchers.ages_ms.clear()
        time.sleep(SETTLED_S)
        if watchers.ages_ms and statistics.median(watchers.ages_ms) < SETTLED_MS:
            return
    raise TimeoutError(f"changes still take longer than a second after {SETTLE_S:g} s: is the machine busy?")


def measure(names: Sequence[str], runs: int) -> Measured:
    """Measures on a stack with a simulator that makes RATE changes a second in PostgreSQL."""
    with TemporaryDirectory(prefix="statecast-bench-") as directory:
        settings = Settings(directory=Path(directory), source="postgres", rate=RATE, orders=ORDERS)
        with running_stack(settings, report=partial(print, file=sys.stderr)) as stack:
            return measure_each({name: partial(repeat, partial(commit_to_client, stack), runs) for name in names})


SUITE = Suite(
    name="postgres",
    description=__doc__,
    measurements=("commit_to_client",),
    options={"runs": 3},
    settings={"changes_per_s": RATE, "orders": ORDERS, "watched": WATCHED, "update_interval_ms": INTERVAL_MS},
    measure=measure,
)

if __name__ == "__main__":
    sys.exit(SUITE.main())
