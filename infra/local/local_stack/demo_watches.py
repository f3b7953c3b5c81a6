"""The demo's watches: orders of several users, or the rows of every store by staff, and who serves each shard."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import httpx
from google.protobuf import json_format

from local_stack.demo_board import Board, Line
from local_stack.demo_lines import ORDERS, order_line, row_line
from local_stack.stack_file import Credentials, Stack
from statecast.query.v1.query_service_pb2 import ListShardsResponse
from statecast_client.push import PushClient, Row, Watch
from testkit.topics import read_newest

OPERATOR_WATCHES = tuple(f"customer-{number:04}" for number in range(3, 11))
ROWS_PER_GROUP = 20
GROUPS_PER_STORE = 5
NEWEST_RECORDS = 200  # of each partition, in which the groups of a store are looked for
INTERVAL_MS = 100
SHARDS_EVERY_S = GROUPS_EVERY_S = 1.0

Clock = Callable[[], float]  # tells the time, in unix seconds


@asynccontextmanager
async def following(stack: Stack, board: Board, clock: Clock) -> AsyncIterator[None]:
    """Feeds the board, during the block, with the rows that demo users with a password and a key may see."""
    async with AsyncExitStack() as clients:
        watches = _Watches(stack, board, clock, clients)
        for name, user in stack.credentials.items():
            if user.basic and user.key:
                await watches.begin(name, user)
        try:
            yield
        finally:
            for task in watches.tasks:
                task.cancel()
            await asyncio.gather(*watches.tasks, return_exceptions=True)


@dataclass
class _Watches:
    """The tasks that feed a board."""

    stack: Stack
    board: Board
    clock: Clock
    clients: AsyncExitStack
    tasks: list[asyncio.Task[None]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._trust = ssl.create_default_context(cafile=self.stack.gateway.ca_certificate)

    async def begin(self, name: str, user: Credentials) -> None:
        """Begins the watches: of orders by all demo users, of all other rows by staff only."""
        if self.board.kind is ORDERS:
            push = await self._push(user)
            customers = (user.customer_id,) if user.customer_id else OPERATOR_WATCHES
            self.tasks += [asyncio.create_task(self._orders(push, each, name)) for each in customers]
        if user.customer_id:
            return
        address, headers = self.stack.gateway.https, user.headers
        http = httpx.AsyncClient(base_url=address, headers=headers, verify=self._trust, trust_env=False)
        await self.clients.enter_async_context(http)
        self.tasks.append(asyncio.create_task(self._shards(http)))
        if self.board.kind is not ORDERS:
            self.tasks.append(asyncio.create_task(self._stores(http, name, user)))

    async def _push(self, user: Credentials) -> PushClient:
        address = f"{self.stack.gateway.wss}/v1/stream"
        push = PushClient(address, credentials=user.headers, tls=self._trust)
        return await self.clients.enter_async_context(push)

    async def _orders(self, client: PushClient, customer: str, seen_by: str) -> None:
        watch = client.watch(
            "orders-by-customer", customer, limit=ROWS_PER_GROUP, reverse=True, times=True, interval_ms=INTERVAL_MS
        )
        try:
            await self._apply(watch, lambda row: order_line(row, seen_by))
        except Exception as error:  # noqa: BLE001  any error of the task is shown on the board
            self.board.problem = f"{seen_by}: {error}"

    async def _apply(self, watch: Watch, line_of: Callable[[Row], Line | None]) -> None:
        async for change in watch:
            for line in map(line_of, change.rows.values()):
                if line is not None:
                    self.board.apply(line, self.clock())

    async def _stores(self, http: httpx.AsyncClient, seen_by: str, user: Credentials) -> None:
        """Begins to watch each store, on a socket of its own, as soon as there is something in it."""
        try:
            listed: dict[str, Any] = (await http.get("/v1/stores")).raise_for_status().json()
            async with asyncio.TaskGroup() as stores:
                for each in listed["stores"]:
                    stores.create_task(self._store(await self._push(user), each["store"], seen_by))
        except Exception as error:  # noqa: BLE001  as above
            self.board.problem = f"{seen_by}: {error}"

    async def _store(self, client: PushClient, store: str, seen_by: str) -> None:
        groups: list[str] = []
        while not groups:
            await asyncio.sleep(GROUPS_EVERY_S)
            groups = await asyncio.to_thread(newest_groups, self.stack.kafka.bootstrap, store)
        async with asyncio.TaskGroup() as watches:
            for group in groups:
                watch = client.watch(store, group, limit=ROWS_PER_GROUP, times=True, interval_ms=INTERVAL_MS)
                watches.create_task(self._apply(watch, partial(row_line, store, group, seen_by=seen_by)))

    async def _shards(self, client: httpx.AsyncClient) -> None:
        while True:
            try:
                response = (await client.get("/v1/shards")).raise_for_status()
                shard_map = json_format.Parse(response.content, ListShardsResponse(), ignore_unknown_fields=True)
                self.board.shards, self.board.problem = shard_map.shards, ""
            except (httpx.HTTPError, json_format.ParseError) as error:
                self.board.problem = f"shards: {error}"
            await asyncio.sleep(SHARDS_EVERY_S)


def newest_groups(bootstrap: str, topic: str) -> list[str]:
    """Returns the groups that changed last on a store's topic, the newest first; none while the topic is empty."""
    records = [record for record in read_newest(bootstrap, topic, NEWEST_RECORDS) if record.value is not None]
    newest = sorted(records, key=lambda record: record.time_ms, reverse=True)
    return list(dict.fromkeys(record.key.split(b"\0")[0].decode() for record in newest))[:GROUPS_PER_STORE]
