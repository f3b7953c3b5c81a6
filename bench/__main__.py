"""Measures the whole stack in one go and writes bench/results/stack.json: `make bench`."""

import asyncio
import json
import sys
import tempfile
import time
from contextlib import closing
from functools import partial
from itertools import cycle
from pathlib import Path
from threading import Event

from confluent_kafka import Consumer, TopicPartition
from drivers.gateway_client import Gateway, GatewayClient, client_of, gateway_of, watch_request
from drivers.lookups import Lookups
from drivers.order_source import OrderSource
from drivers.order_watchers import OrderWatchers
from google.protobuf.timestamp_pb2 import Timestamp
from websockets.asyncio.client import connect

from bench.lookups import known_orders, measure_lookups
from bench.results import Metric, combine, percentiles, table, write
from local_stack.running_stack import RunningStack, running_stack
from local_stack.settings import Settings
from statecast.orders.v1.order_pb2 import OrderStatus
from statecast.state.v1.state_pb2 import StateKey, StateRecord
from testkit.background import in_background

_tell = partial(print, file=sys.stderr)
MEASURE_S = 20.0
PROBES = 300
SETTLED_PROBES = 20
SETTLE_S = 180.0


def settle(source: OrderSource, lookups: Lookups) -> None:
    """Returns when new orders are looked up within a second of their commit, which is when no backlog is left.

    Raises TimeoutError when that takes longer than SETTLE_S.
    """
    deadline = time.monotonic() + SETTLE_S
    quick = 0
    while quick < SETTLED_PROBES:
        if time.monotonic() > deadline:
            raise TimeoutError(f"changes still take longer than a second after {SETTLE_S:g} s: is the machine busy?")
        quick = quick + 1 if _probe_ms(source, lookups) < 1_000 else 0


def to_topic(bootstrap: str, topic: str = "orders-by-key") -> dict[str, float]:
    """From the commit at the source until a consumer of the keyed topic has the record, in milliseconds."""
    ages: list[float] = []
    with closing(Consumer({"bootstrap.servers": bootstrap, "group.id": "bench", "fetch.wait.max.ms": 10})) as consumer:
        partitions = consumer.list_topics(topic, timeout=10).topics[topic].partitions
        ends = [(p, consumer.get_watermark_offsets(TopicPartition(topic, p), timeout=10)[1]) for p in partitions]
        consumer.assign([TopicPartition(topic, partition, end) for partition, end in ends])
        deadline = time.monotonic() + MEASURE_S
        while time.monotonic() < deadline:
            record = consumer.poll(1)
            value = record.value() if record is not None else None
            if value is not None:
                ages.append(_age_ms(StateRecord.FromString(value).source.commit_time))
    return percentiles("change_to_topic_ms", ages)


def to_lookup(source: OrderSource, lookups: Lookups) -> dict[str, float]:
    """From the commit of a new order until a waiting lookup of it is answered, in milliseconds."""
    return percentiles("change_to_lookup_ms", [_probe_ms(source, lookups) for _ in range(PROBES)])


def to_client(watchers: OrderWatchers) -> dict[str, float]:
    """From the commit at the source until a client behind the gateway has the frame, in milliseconds."""
    watchers.ages_ms.clear()
    time.sleep(MEASURE_S)
    return percentiles("change_to_client_ms", list(watchers.ages_ms), f".interval_{watchers.interval_ms}")


def _probe_ms(source: OrderSource, lookups: Lookups) -> float:
    order = source.place("customer-bench", {"item-bench": 1})
    lookups.wait_for("orders-by-key", StateKey(group=order.order_id))
    return _age_ms(order.updated_at)


def _age_ms(stamp: Timestamp) -> float:
    return (time.time_ns() - stamp.ToNanoseconds()) / 1e6


SOCKETS = 200
HOT_ORDERS = 10
HOT_CHANGES_PER_S = 200
COUNT_S = 8.0


def frames(gateway: Gateway, staff: GatewayClient, source: OrderSource) -> dict[str, float]:
    """Frames per second over all sockets, while the hot orders change faster than the interval."""
    order_ids = [source.place("customer-bench", {"item-bench": 1}).order_id for _ in range(HOT_ORDERS)]

    def keep_changing(done: Event) -> None:
        statuses = cycle((OrderStatus.ORDER_STATUS_PACKED, OrderStatus.ORDER_STATUS_PAID))
        for order_id, status in zip(cycle(order_ids), statuses, strict=False):
            if done.wait(1 / HOT_CHANGES_PER_S):
                return
            source.advance(order_id, status)

    with in_background(keep_changing):
        return {"frames_per_s": asyncio.run(_count_frames(gateway, staff, order_ids))}


async def _count_frames(gateway: Gateway, staff: GatewayClient, order_ids: list[str]) -> float:
    counts = [0] * SOCKETS

    async def watch(number: int) -> None:
        url = f"{gateway.wss}/update/orders"
        async with connect(url, additional_headers=staff.headers, ssl=gateway.tls(), compression=None) as socket:
            for order_id in order_ids:
                await socket.send(json.dumps(watch_request(order_id, INTERVAL_MS)))
            async for _ in socket:
                counts[number] += 1

    async with asyncio.TaskGroup() as group:
        watching = [group.create_task(watch(number)) for number in range(SOCKETS)]
        while not all(counts):  # noqa: ASYNC110  frames are counted, not announced
            await asyncio.sleep(0.05)
        before, start = sum(counts), time.perf_counter()
        await asyncio.sleep(COUNT_S)
        rate = (sum(counts) - before) / (time.perf_counter() - start)
        for task in watching:
            task.cancel()
    return round(rate)


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
        with running_stack(settings, report=_tell) as stack:
            metrics = measure(stack)
    write("stack", metrics, {"changes_per_s": RATE, "orders": ORDERS, "update_interval_ms": INTERVAL_MS, "runs": RUNS})
    print(table(metrics))


def measure(stack: RunningStack) -> list[Metric]:
    """Measures the freshness of a busy stack, then the throughput with the source at rest, each in several runs."""
    busy = [_freshness(stack) for _ in range(RUNS)]
    stack.stop("cdc-simulator")
    address = stack.file.queries[0].address
    with closing(Lookups(address)) as channel:
        settle(OrderSource(stack.file.kafka.bootstrap), channel)
    order_ids = asyncio.run(known_orders(address, LOOKED_UP))
    rested = [_throughput(stack, order_ids) for _ in range(RUNS)]
    return [*combine(busy), *combine(rested)]


def _freshness(stack: RunningStack) -> dict[str, float]:
    _tell("measuring freshness")
    file = stack.file
    source = OrderSource(file.kafka.bootstrap)
    with closing(Lookups(file.queries[0].address)) as channel:
        settle(source, channel)
        watched = asyncio.run(known_orders(file.queries[0].address, WATCHED))
        with OrderWatchers(gateway_of(stack), client_of(stack, "operator"), watched, INTERVAL_MS) as watchers:
            client_ms = to_client(watchers)
        return {**to_topic(file.kafka.bootstrap), **to_lookup(source, channel), **client_ms}


def _throughput(stack: RunningStack, order_ids: list[str]) -> dict[str, float]:
    _tell("measuring throughput")
    file = stack.file
    frames_per_s = frames(gateway_of(stack), client_of(stack, "operator"), OrderSource(file.kafka.bootstrap))
    return {**asyncio.run(measure_lookups(file.queries[0].address, order_ids)), **frames_per_s}


if __name__ == "__main__":
    main()
