"""Measures the whole stack in one go and writes bench/results/stack.json: `make bench`."""

import asyncio
import sys
import tempfile
from contextlib import AbstractContextManager, closing
from pathlib import Path

from drivers.audience import Audience
from drivers.lookups import Lookups
from drivers.participants import as_gateway, phone_of
from drivers.source import OrderSource

from bench import frames, freshness, lookups
from bench.results import Metric, combine, table, write
from local_stack.running_stack import RunningStack, running_stack
from local_stack.settings import Settings

RUNS = 3
RATE = 1_000
ORDERS = 5_000
INTERVAL_MS = 100
LOOKED_UP = 2_000
WATCHED = 300


def main() -> None:
    """Starts a stack of its own, measures every suite three times, prints and writes the table."""
    with tempfile.TemporaryDirectory(prefix="statecast-bench-") as directory:
        settings = Settings(directory=Path(directory), rate=RATE, orders=ORDERS)
        with running_stack(settings, tell=_tell) as stack:
            metrics = measure(stack)
    shown = {"changes_per_s": RATE, "orders": ORDERS, "update_interval_ms": INTERVAL_MS, "runs": RUNS}
    write("stack", metrics, shown)
    print(table(metrics))


def measure(stack: RunningStack) -> list[Metric]:
    """The freshness of a busy stack, then the throughput of one whose source rests, each in several runs."""
    busy = [_freshness(stack) for _ in range(RUNS)]
    stack.stop("cdc-simulator")
    with _lookups(stack) as channel:
        freshness.settle(OrderSource(stack.file.kafka.bootstrap), channel)
    order_ids = asyncio.run(lookups.known_orders(stack.file.queries[0].address, ORDERS, LOOKED_UP))
    rested = [_throughput(stack, order_ids) for _ in range(RUNS)]
    return [*combine(busy), *combine(rested)]


def _freshness(stack: RunningStack) -> dict[str, float]:
    _tell("measuring freshness")
    file = stack.file
    source = OrderSource(file.kafka.bootstrap)
    with _lookups(stack) as channel:
        freshness.settle(source, channel)
        watched = asyncio.run(lookups.known_orders(file.queries[0].address, ORDERS, WATCHED))
        with Audience(as_gateway(stack), phone_of(stack, "operator"), watched, INTERVAL_MS) as audience:
            to_client = freshness.to_client(audience)
        return {**freshness.to_topic(file.kafka.bootstrap), **freshness.to_lookup(source, channel), **to_client}


def _throughput(stack: RunningStack, order_ids: list[str]) -> dict[str, float]:
    _tell("measuring throughput")
    file = stack.file
    frames_per_s = frames.measure(as_gateway(stack), phone_of(stack, "operator"), OrderSource(file.kafka.bootstrap))
    return {**asyncio.run(lookups.measure(file.queries[0].address, order_ids)), **frames_per_s}


def _lookups(stack: RunningStack) -> AbstractContextManager[Lookups]:
    return closing(Lookups(stack.file.queries[0].address))


def _tell(text: str) -> None:
    print(text, file=sys.stderr)


if __name__ == "__main__":
    main()
