"""Measures a query service's cluster as it grows, and writes bench/results/scale.json: `make bench-scale`."""

import asyncio
import multiprocessing
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path

from bench import scale_listing
from bench.results import Measured, Suite, combine, measure_each, repeat
from bench.scale_members import ZONES, run_members, store_topics
from bench.scale_sizes import points, size, slopes
from query_service.cluster.shard_map import RULES, Member, ShardMap
from query_service.cluster.view import View
from query_service.storage.store_directory import Topic
from testkit.broker import BrokerProcess
from testkit.ports import free_port
from testkit.query_service import store_definition
from testkit.relay import Relay
from testkit.topics import create_topic

PARTITIONS = 16
MEMBERS_PER_PROCESS = 10
REST_S = 30.0
"""Without the list that each member reads every five minutes though nothing has changed."""
KNOWN_S = 120.0


@contextmanager
def members(numbers: Sequence[int], bootstrap: str, stores: int) -> Iterator[list[Connection]]:
    """Runs members in processes of some each; they leave at the end of the block."""
    context = multiprocessing.get_context("spawn")
    connections = []
    for at in range(0, len(numbers), MEMBERS_PER_PROCESS):
        ours, theirs = context.Pipe()
        some = numbers[at : at + MEMBERS_PER_PROCESS]
        context.Process(target=run_members, args=(theirs, some, bootstrap, "scale", stores), daemon=True).start()
        connections.append(ours)
    yield connections
    for connection in connections:
        connection.send(None)
    for connection in connections:
        connection.recv()


async def until_known(connections: Sequence[Connection], count: int) -> float:
    """Waits until every member knows this many, and returns the seconds that it took. Raises TimeoutError."""
    began = time.monotonic()
    async with asyncio.timeout(KNOWN_S):
        while True:
            for connection in connections:
                connection.send("known")
            known = [each for connection in connections for each in await asyncio.to_thread(connection.recv)]
            if set(known) == {count}:
                return time.monotonic() - began
            await asyncio.sleep(0.02)


async def membership(instances: int, stores: int) -> dict[str, float]:
    """Measures the bytes between members and broker, at rest and when one joins and leaves, and how soon all know."""
    name, port = f"membership_{instances}x{stores}", free_port()
    advertised = {"advertised.listeners": f"PLAINTEXT://127.0.0.1:{port}"}
    with tempfile.TemporaryDirectory() as directory:
        broker = BrokerProcess(Path(directory), settings=advertised)
        with broker.running():
            async with Relay(broker.bootstrap, port=port) as relay:
                for topic in store_topics(stores).values():
                    await asyncio.to_thread(create_topic, relay.address, topic, 1)
                with members(range(instances), relay.address, stores) as connections:
                    await until_known(connections, instances)
                    began = relay.passed_bytes
                    await asyncio.sleep(REST_S)
                    before = relay.passed_bytes
                    with members([instances], relay.address, stores) as newcomer:
                        joined_s = await until_known([*connections, *newcomer], instances + 1)
                    left_s = await until_known(connections, instances)
                    changed = relay.passed_bytes - before
    return {
        f"{name}_rest_bytes_per_s": round((before - began) / REST_S),
        f"{name}_change_kb": round(changed / 2048),
        f"{name}_join_known_ms": round(joined_s * 1000),
        f"{name}_leave_known_ms": round(left_s * 1000),
    }


async def first_map(instances: int, stores: int) -> dict[str, float]:
    """Returns how long the first map takes, and how long it holds the event loop at most."""
    everyone = [
        Member(f"query-{number}", f"h{number}:1", f"h{number}:2", 1, (), ZONES[number % len(ZONES)], RULES)
        for number in range(instances)
    ]
    view = View(everyone[0], [store_definition(name) for name in store_topics(stores)], 2)
    view.topics = {each.topic: Topic(each.topic, "id", 1, PARTITIONS) for each in view.stores.values()}
    held: list[float] = []

    async def tick() -> None:
        last = time.monotonic()
        while True:
            await asyncio.sleep(0)
            held.append(time.monotonic() - last)
            last = time.monotonic()

    ticking = asyncio.create_task(tick())
    await asyncio.sleep(0)
    view.shard_map = ShardMap(frozenset(everyone), 2)
    began = time.monotonic()
    await view.rank()
    view.assigned()
    took_s = time.monotonic() - began
    await asyncio.sleep(0)
    ticking.cancel()
    name = f"first_map_{instances}x{stores}"
    return {f"{name}_ms": round(took_s * 1000, 1), f"{name}_loop_held_ms": round(max(held) * 1000, 1)}


async def listing(instances: int, stores: int) -> dict[str, float]:
    """Measures the bytes a second with which all instances list their partitions to each other."""
    return await scale_listing.listing(instances, stores, PARTITIONS)


Measurement = Callable[[int, int], Awaitable[dict[str, float]]]


def _run(measurement: Measurement, instances: int, stores: int) -> dict[str, float]:
    async def run() -> dict[str, float]:
        return await measurement(instances, stores)

    return asyncio.run(run())


CLUSTERS = ((2, 1), (10, 20), (50, 100))
MEASUREMENTS: dict[str, Callable[[], dict[str, float]]] = {
    **{
        f"{measure.__name__}.{instances}x{stores}": partial(_run, measure, instances, stores)
        for measure in (first_map, listing, membership)
        for instances, stores in CLUSTERS
    },
    **{f"size.{point}": partial(size, point) for point in points()},
}


def measure(names: Sequence[str], runs: int) -> Measured:
    """Makes the measurements one after the other, and adds how each metric grows."""
    metrics, failed = measure_each({name: partial(repeat, MEASUREMENTS[name], runs) for name in names})
    return metrics + combine([slopes({each.metric: each.value for each in metrics})]), failed


SUITE = Suite(
    name="scale",
    description=__doc__,
    measurements=tuple(MEASUREMENTS),
    options={"runs": 1},
    settings={"partitions": PARTITIONS, "rest_s": REST_S, "members_per_process": MEMBERS_PER_PROCESS},
    measure=measure,
)

if __name__ == "__main__":
    sys.exit(SUITE.main())
