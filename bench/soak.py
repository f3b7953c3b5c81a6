"""Shows that the memory of an edge and of the query service does not grow with clients' requests: `make soak`.

The same customers come and go for SOAK_MINUTES (30): they watch keys and ranges of names that nobody has used before,
fill channels, renew their access, read pages, and are refused. One instance is asked for others' keys as well. After
a sixth of the time, in which caches fill, the resident memory of each process is sampled every second.

A process fails when the medians of 30 equal stretches rise by the Mann-Kendall test at the 1 % level, as in Garg, van
Moorsel, Vaidyanathan, Trivedi, "A methodology for detection and estimation of software aging" (ISSRE 1998), and that is
more than noise: Sen's slope over the sampled time is above 2 % of the median. The test alone finds trends where there
are none (Machida et al., "On the effectiveness of Mann-Kendall test for detection of software aging", ISSREW 2013).
"""

import asyncio
import json
import os
import random
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import ExitStack, asynccontextmanager, suppress
from http import HTTPStatus
from itertools import combinations, count
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from grpc import StatusCode
from grpc.aio import AioRpcError, insecure_channel
from httpx import AsyncClient, Limits
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import InvalidStatus

from bench.edge_rig import NAMES, SECRET, EdgeProcess
from statecast.orders.v1.order_pb2 import Order
from statecast.partitioning import partition_of
from statecast.query.v1.query_pb2 import KeyQuery
from statecast.query.v1.query_service_pb2 import BatchGetStatesRequest, GetStateRequest
from statecast.query.v1.query_service_pb2_grpc import QueryServiceStub
from statecast.state.v1.state_pb2 import StateKey
from statecast_client.client import StatecastClient
from statecast_client.errors import StatecastError
from testkit.broker import running_broker
from testkit.keyed_topic_writers import producer
from testkit.query_cluster import MESSAGE, PARTITIONS, query_cluster
from testkit.service_process import ServiceProcess
from testkit.ws_edge.channels import channel_of, order, orders_of, put
from testkit.ws_edge.edge import gateway_headers
from ws_edge.channels import EDGE_STORES

if TYPE_CHECKING:
    from statecast.query.v1.query_service_pb2_grpc import QueryServiceAsyncStub

CUSTOMERS = 40
ORDERS = 10  # of each customer
CALLERS = 4  # of one instance, for keys of all
CHANGES_PER_S = 100
WATCHES = 5  # in one visit
WARM_UP_SHARE = 1 / 6
STRETCHES = 30
SIGNIFICANT_Z = 2.326  # one-sided, 1 %
NOISE_SHARE = 0.02
LOG_TAIL = 20_000  # characters of the edge's log, when a customer gets another answer than it should
# Caches as small as they may be, so that they are full when the warm-up is over.
QUERY: dict[str, Any] = {"block_cache_mb": 8, "write_buffers_mb": 8, "recent_changes": 500, "deletions_s": 10}
MINE, MEMBERS = "orders-by-key", "orders-by-customer"
REFUSED: tuple[tuple[str, str], ...] = (
    ("no JSON", "error"),
    ('{"watch": [{"id": 1001, "store": "unknown-store", "group": "a"}]}', "ended"),
    ('{"watch": [{"id": 1002, "store": "orders-by-customer", "group": "somebody-else"}]}', "ended"),
    ('{"watch": [{"id": 1002}]}', "error"),
    ('{"renew": {"ticket": "forged"}}', "error"),
)
"""Frames that are wrong, and the part of the frame that answers."""


class Customer:
    """One customer, who visits again and again; `requests` counts the requests by kind."""

    def __init__(self, number: int, address: str, queries: StatecastClient, requests: Counter[str]) -> None:
        self._id, self._orders = f"customer-{number:04d}", [f"order-{number}-{each}" for each in range(ORDERS)]
        self._address, self._queries, self._requests = address, queries, requests
        self._headers = gateway_headers(SECRET, self._id, "customers")

    async def visit_until(self, end: float) -> None:
        address, anew = f"http://{self._address}", Limits(max_keepalive_connections=0)  # the edge ends idle ones
        async with AsyncClient(base_url=address, headers=self._headers, timeout=60, limits=anew) as client:
            while time.monotonic() < end:
                await self._stream(client)
                await self._channel(client)
                await self._read(client)
                await self._ask_the_query_service()

    def _connect(self, path: str) -> connect:
        return connect(f"ws://{self._address}{path}", additional_headers=self._headers, open_timeout=60)

    @asynccontextmanager
    async def _connected(self, path: str) -> AsyncIterator[ClientConnection]:
        """Connects as a client should: one that is turned away because the edge is busy comes back when it is told."""
        while True:
            try:
                socket = await self._connect(path)
                break
            except InvalidStatus as refusal:
                if refusal.response.status_code != HTTPStatus.SERVICE_UNAVAILABLE:
                    raise
                self._requests["HTTP 503"] += 1
                await asyncio.sleep(float(refusal.response.headers["Retry-After"]))
        async with socket:
            yield socket

    async def _stream(self, client: AsyncClient) -> None:
        numbers = count(1)
        async with self._connected("/v1/stream") as socket:
            for _ in range(WATCHES):
                for name in (random.choice(self._orders), uuid4().hex):
                    key = {"store": MINE, "group": name, "interval_ms": random.choice((0, 100, 60_000))}
                    await self._watch(socket, next(numbers), key)
                limit, start = random.randrange(1, 1000), uuid4().hex
                for spec in ({"limit": limit}, {"limit": limit}, {"sort_from": start, "reverse": True}):
                    asked = {"store": MEMBERS, "group": self._id, "interval_ms": 60_000} | spec
                    await self._watch(socket, next(numbers), asked)
                ticket = (await client.post("/v1/tickets")).json()["ticket"]
                self._requests["renew"] += 1
                await socket.send(json.dumps({"renew": {"ticket": ticket}}))
                await _until(socket, "access")
            for frame, part in REFUSED:
                await socket.send(frame)
                await _until(socket, part)

    async def _watch(self, socket: ClientConnection, number: int, asked: dict[str, Any]) -> None:
        """Watches until everything has come, and ends the watch."""
        self._requests["watch"] += 1
        await socket.send(json.dumps({"watch": [{"id": number, **asked}]}))
        await _until(socket, "current")
        await socket.send(json.dumps({"unwatch": [number]}))
        await _until(socket, "ended")

    async def _channel(self, client: AsyncClient) -> None:
        channel = await channel_of(client, order=order(random.choice(self._orders)), all=orders_of(self._id))
        async with self._connected("/v1/stream") as socket:
            await socket.send(json.dumps({"watch": [{"id": 1, "channel": channel}]}))
            await _until(socket, "current")
            await put(client, channel, "another", order(uuid4().hex))
            while (await _until(socket, "watching")).get("path") != ["another"]:
                continue
            await client.delete(f"/v1/channels/{channel}")
            while "path" in await _until(socket, "ended"):
                continue
        self._requests["channel"] += 1

    async def _read(self, client: AsyncClient) -> None:
        params = {"limit": "3"}
        while params:
            answer = await client.get(f"/v1/stores/{MEMBERS}/rows", params={"group": self._id} | params)
            token = answer.raise_for_status().json().get("next_page_token")
            params = {"limit": "3", "page_token": token} if token else {}
        paths = f"/update/orders/{uuid4().hex}", f"/v1/stores/{uuid4().hex}/rows?group=a", f"/v1/channels/{uuid4().hex}"
        for path in paths:
            self._requests[f"HTTP {(await client.get(path)).status_code}"] += 1
        await client.get("/v1/consumer", headers={"X-Gateway-Secret": uuid4().hex})
        with suppress(InvalidStatus):
            await self._connect(f"/{uuid4().hex}")

    async def _ask_the_query_service(self) -> None:
        await self._queries.batch_get(MINE, [uuid4().hex * 20 for _ in range(20)])
        for store, group in ((uuid4().hex, "a"), (MINE, uuid4().hex), (MINE, "x" * 4_000)):
            with suppress(StatecastError):
                await self._queries.get(store, group)


async def _until(socket: ClientConnection, part: str) -> dict[str, Any]:
    """Returns the next frame with the part."""
    while part not in (frame := json.loads(await socket.recv())):
        continue
    return dict(frame)


async def call_until(end: float, address: str, requests: Counter[str]) -> None:
    """Looks up a customer's orders and some absent ones at one instance, each alone and all together."""
    async with insecure_channel(address) as channel:
        stub: QueryServiceAsyncStub = QueryServiceStub(channel)
        while time.monotonic() < end:
            customer = random.randrange(CUSTOMERS)
            names = [name for each in range(ORDERS) for name in (f"order-{customer}-{each}", uuid4().hex)]
            keys = [StateKey(group=name) for name in names]
            gets = [stub.GetState(GetStateRequest(store=MINE, key=key), timeout=60) for key in keys]
            await stub.BatchGetStates(
                BatchGetStatesRequest(store=MINE, keys=[KeyQuery(key=key) for key in keys]), timeout=60
            )
            for get in gets:
                try:
                    await get
                except AioRpcError as error:
                    if error.code() != StatusCode.NOT_FOUND:
                        raise
            requests["get"] += len(gets)
            requests["key of a batch"] += len(keys)


def change(sender: Any, sequence: int) -> None:
    """Moves one order of one customer to another sort value."""
    customer, which = sequence % CUSTOMERS, sequence // CUSTOMERS % ORDERS
    name, group = f"order-{customer}-{which}", f"customer-{customer:04d}"
    row = Order(order_id=name, customer_id=group, tracking_number=str(sequence)).SerializeToString()
    sender.produce(MINE, row, name.encode(), partition_of(name, PARTITIONS))
    place = partition_of(group, PARTITIONS)
    sender.produce(MEMBERS, row, f"{group}\0{sequence:012d}\0{name}".encode(), place)
    if (before := sequence - CUSTOMERS * ORDERS) >= 0:
        sender.produce(MEMBERS, None, f"{group}\0{before:012d}\0{name}".encode(), place)


async def soak(address: str, processes: dict[str, ServiceProcess], bootstrap: str, seconds: float) -> bool:
    """Prints the figures; returns whether the memory of all processes is flat."""
    requests, sender, sequences = Counter[str](), producer(bootstrap, linger_ms=1), count()
    began = time.monotonic()
    samples: dict[str, list[tuple[float, float]]] = {name: [] for name in processes}
    instance: str = processes[NAMES[0]].address  # type: ignore[attr-defined]
    async with StatecastClient([instance]) as queries:
        customers = [Customer(number, address, queries, requests) for number in range(CUSTOMERS)]
        running = asyncio.gather(
            *(customer.visit_until(began + seconds) for customer in customers),
            *(call_until(began + seconds, instance, requests) for _ in range(CALLERS)),
        )
        while not running.done():
            for _ in range(CHANGES_PER_S):
                change(sender, next(sequences))
            sender.poll(0)
            if (elapsed := time.monotonic() - began) > seconds * WARM_UP_SHARE:
                for name, process in processes.items():
                    samples[name].append((elapsed, process.rss_bytes / 1e6))
            await asyncio.sleep(1)
        await running
    sender.flush()
    print(", ".join(f"{kind} {number:,}" for kind, number in requests.most_common()))
    return min([is_flat(name, of_process) for name, of_process in samples.items()])  # all of them are printed


def is_flat(name: str, samples: Sequence[tuple[float, float]]) -> bool:
    """Prints the trend of a process, from seconds and megabytes; returns whether there is none."""
    size = len(samples) // STRETCHES
    stretches = [samples[start : start + size] for start in range(0, size * STRETCHES, size)]
    medians = [(statistics.median(s for s, _ in each), statistics.median(mb for _, mb in each)) for each in stretches]
    pairs = [(later[1] - first[1], later[0] - first[0]) for first, later in combinations(medians, 2)]
    score = sum((rise > 0) - (rise < 0) for rise, _ in pairs)
    z = (score - 1) / (STRETCHES * (STRETCHES - 1) * (2 * STRETCHES + 5) / 18) ** 0.5
    mb, slope = statistics.median(mb for _, mb in samples), statistics.median(rise / s for rise, s in pairs)
    growth = slope * (samples[-1][0] - samples[0][0])
    flat = z < SIGNIFICANT_Z or growth < NOISE_SHARE * mb
    print(f"{name}: {mb:.1f} MB, {slope * 3600:+.1f} MB/h, {growth / mb:+.1%} in all, Z {z:+.1f}, {flat=}")
    return flat


def main() -> int:
    """Returns 0 when the memory of all processes is flat."""
    seconds = 60 * float(os.environ.get("SOAK_MINUTES", "30"))
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="statecast-soak-")))
        kafka = stack.enter_context(running_broker(directory / "broker")).bootstrap
        cluster = stack.enter_context(query_cluster(kafka, directory / "query", session_timeout_ms=6000, **QUERY))
        for name, store in EDGE_STORES.items():
            cluster.add_store(name, store.kind, format="plain")
        owner = {"field": "customer_id"}
        cluster.add_store(MINE, MESSAGE, format="plain", readers=owner)
        cluster.add_store(MEMBERS, MESSAGE, format="plain", readers={**owner, "group": True}, keeps="members")
        cluster.start(*NAMES)
        addresses = ",".join(each.address for each in cluster.instances.values())
        settings = {"gateway_secret": SECRET, "query_addresses": addresses, "kafka_bootstrap": kafka}
        edge = stack.enter_context(EdgeProcess(settings, directory / "edge.log"))
        edge.start()
        edge.wait_ready()
        try:
            return 0 if asyncio.run(soak(edge.address, {"ws-edge": edge, **cluster.instances}, kafka, seconds)) else 1
        except Exception:
            print(edge.log[-LOG_TAIL:], file=sys.stderr)
            raise


if __name__ == "__main__":
    sys.exit(main())
