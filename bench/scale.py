"""Measures a query service's cluster as it grows, and writes bench/results/scale.json: `make bench-scale`."""

import asyncio
import multiprocessing
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from bench.results import Measured, Suite, combine, measure_each, repeat
from bench.scale_listing import listing
from bench.scale_members import ZONES, run_members, store_topics
from bench.scale_sizes import LARGE, Sizes, points, size, slopes
from query_service.cluster.shard_map import RULES, Member, ShardMap
from query_service.cluster.view import View
from query_service.storage.store_directory import Topic
from testkit.broker import BrokerProcess
from testkit.keyed_topic_writers import row_key, row_record
from testkit.ports import free_port
from testkit.query_cluster import REPLICAS
from testkit.query_service import store_definition
from testkit.relay import Relay
from testkit.topics import create_topic

MEMBERS_PER_PROCESS = 10
REST_S = 30.0
"""Without the list that each member reads every five minutes though nothing has changed."""
KNOWN_S = 120.0


@asynccontextmanager
async def members(numbers: Sequence[int], bootstrap: str, stores: int) -> AsyncIterator[list[Connection]]:
    """Runs members in processes of some each, which join as the block begins, and leave at its end."""
    context = multiprocessing.get_context("spawn")
    connections = []
    for at in range(0, len(numbers), MEMBERS_PER_PROCESS):
        ours, theirs = context.Pipe()
        some = numbers[at : at + MEMBERS_PER_PROCESS]
        context.Process(target=run_members, args=(theirs, some, bootstrap, "scale", stores), daemon=True).start()
        connections.append(ours)
    await _answers(connections)
    yield connections
    for connection in connections:
        connection.send(None)
    await _answers(connections)


async def _answers(connections: Sequence[Connection]) -> list[Any]:
    """Receives one message of each, in a thread: the relay to the broker runs on this event loop."""
    return [await asyncio.to_thread(connection.recv) for connection in connections]


async def until_known(connections: Sequence[Connection], count: int, asked: str = "known") -> float:
    """Waits until every member knows this many, and returns the seconds that it took. Raises TimeoutError.

    Members that are `asked` for "resting" read the group no more, either.
    """
    began = time.monotonic()
    async with asyncio.timeout(KNOWN_S):
        while True:
            for connection in connections:
                connection.send(asked)
            known = {each for answer in await _answers(connections) for each in answer}
            if known == {count}:
                return time.monotonic() - began
            await asyncio.sleep(0.02)


async def membership(sizes: Sizes) -> dict[str, float]:
    """Measures the bytes between members and broker, at rest and when one joins and leaves, and how soon all know."""
    port, instances, stores = free_port(), sizes.instances, sizes.stores
    advertised = {"advertised.listeners": f"PLAINTEXT://127.0.0.1:{port}"}
    with tempfile.TemporaryDirectory() as directory:
        broker = BrokerProcess(Path(directory), settings=advertised)
        with broker.running():
            async with Relay(broker.bootstrap, port=port) as relay:
                for topic in store_topics(stores).values():
                    await asyncio.to_thread(create_topic, relay.address, topic, sizes.partitions)
                async with members(range(instances), relay.address, stores) as connections:
                    await until_known(connections, instances, "resting")
                    began = relay.passed_bytes
                    await asyncio.sleep(REST_S)
                    before = relay.passed_bytes
                    async with members([instances], relay.address, stores) as newcomer:
                        joined_s = await until_known([*connections, *newcomer], instances + 1)
                        leaves = time.monotonic()
                    await until_known(connections, instances)
                    left_s = time.monotonic() - leaves
                    changed = relay.passed_bytes - before
    return {
        "membership_rest_bytes_per_s": round((before - began) / REST_S),
        "membership_change_kb": round(changed / 2048),
        "membership_join_known_ms": round(joined_s * 1000),
        "membership_leave_known_ms": round(left_s * 1000),
    }


async def first_map(sizes: Sizes) -> dict[str, float]:
    """Returns how long the first map takes, and how long it holds the event loop at most."""
    everyone = [
        Member(f"query-{number}", f"h{number}:1", f"h{number}:2", 1, (), ZONES[number % len(ZONES)], RULES)
        for number in range(sizes.instances)
    ]
    view = View(everyone[0], [store_definition(name) for name in store_topics(sizes.stores)], REPLICAS)
    view.topics = {each.topic: Topic(each.topic, "id", 1, sizes.partitions) for each in view.stores.values()}
    held: list[float] = []

    async def tick() -> None:
        last = time.monotonic()
        while True:
            await asyncio.sleep(0)
            held.append(time.monotonic() - last)
            last = time.monotonic()

    ticking = asyncio.create_task(tick())
    await asyncio.sleep(0)
    view.shard_map = ShardMap(frozenset(everyone), REPLICAS)
    began = time.monotonic()
    await view.rank()
    view.assigned()
    took_s = time.monotonic() - began
    await asyncio.sleep(0)
    ticking.cancel()
    return {"first_map_ms": round(took_s * 1000, 1), "first_map_loop_held_ms": round(max(held) * 1000, 1)}


Measurement = Callable[[Sizes], dict[str, float]]


def _run(measurement: Callable[[Sizes], Coroutine[None, None, dict[str, float]]]) -> Measurement:
    return lambda sizes: asyncio.run(measurement(sizes))


MEMBERS = {**points("partitions", "instances", "stores"), LARGE.point: LARGE}


def measure_point(measurement: Measurement, sizes: Sizes) -> dict[str, float]:
    """Returns the figures of one cluster, each with the name of the point at its end."""
    return {f"{metric}.{sizes.point}": figure for metric, figure in measurement(sizes).items()}


MEASUREMENTS: dict[str, Callable[[], dict[str, float]]] = {
    f"{name}.{point}": partial(measure_point, measurement, sizes)
    for name, measurement, clusters in (
        ("first_map", _run(first_map), MEMBERS),
        ("listing", _run(listing), MEMBERS),
        ("membership", _run(membership), MEMBERS),
        ("size", size, points()),
    )
    for point, sizes in clusters.items()
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
    settings={
        "replicas": REPLICAS,
        "row_bytes": len(row_key(0)) + len(row_record(0, 1)),
        "rest_s": REST_S,
        "members_per_process": MEMBERS_PER_PROCESS,
    },
    measure=measure,
)

if __name__ == "__main__":
    sys.exit(SUITE.main())
