"""Watchers of orders and customers by the Python client, which reconnects by itself; they keep all rows that come."""

import asyncio
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from typing_extensions import override

from drivers.gateway_client import Gateway, GatewayClient
from drivers.loop_thread import LoopThread
from statecast_client.push import PushClient, Row, Watch

MAX_MEMBERS = 600  # of one customer, and few enough for the quota of one consumer


@dataclass(repr=False)
class PushWatcher:
    """One client that watches orders, and all orders of customers; its rows and watches are by the ids of these."""

    order_ids: Sequence[str]
    customers: Sequence[str]
    interval_ms: int
    updates: dict[str, list[Row]] = field(default_factory=lambda: defaultdict(list))
    ranges: dict[str, list[Row]] = field(default_factory=lambda: defaultdict(list))
    watches: dict[str, Watch] = field(default_factory=dict)
    attempts: int = 0
    """How often it has begun to connect."""

    async def watch(self, gateway: Gateway, phone: GatewayClient) -> None:
        """Watches until it is cancelled. Raises PushRefusedError, in a group, when a watch is refused."""

        async def credentials(_: str) -> Mapping[str, str]:
            self.attempts += 1
            return phone.headers

        address, tls = f"{gateway.wss}/v1/stream", gateway.tls()
        async with PushClient(address, credentials=credentials, tls=tls) as client, asyncio.TaskGroup() as readers:
            for customer in self.customers:
                self._begin(client, readers, "orders-by-customer", customer, self.ranges[customer])
            for order_id in self.order_ids:
                self._begin(client, readers, "orders-by-key", order_id, self.updates[order_id])

    def _begin(self, client: PushClient, readers: asyncio.TaskGroup, store: str, group: str, rows: list[Row]) -> None:
        watch = client.watch(store, group, limit=MAX_MEMBERS, times=True, interval_ms=self.interval_ms)
        self.watches[group] = watch
        readers.create_task(_keep(watch, rows))

    @property
    def has_begun(self) -> bool:
        """Whether all watches have a token to go on from."""
        count = len(self.customers) + len(self.order_ids)
        return len(self.watches) == count and all(each.token for each in self.watches.values())

    @property
    def started_anew(self) -> list[str]:
        """The ids of the watches that did not go on where they were, when they began last."""
        return [group for group, each in self.watches.items() if each.resumed is not True]


class PushWatchers(LoopThread):
    """Clients that watch through the gateway, on a thread of their own, while it is entered."""

    def __init__(self, gateway: Gateway, phone: GatewayClient, watchers: Sequence[PushWatcher]) -> None:
        super().__init__("push-watchers")
        self.all = watchers
        self._gateway = gateway
        self._phone = phone

    def assert_begun(self) -> None:
        """Asserts that all watches of all watchers have begun. Raises the error that has ended the watchers."""
        self.check()
        assert all(watcher.has_begun for watcher in self.all)

    @override
    async def watch_all(self) -> None:
        async with asyncio.TaskGroup() as watchers:
            for watcher in self.all:
                watchers.create_task(watcher.watch(self._gateway, self._phone))


async def _keep(watch: Watch, rows: list[Row]) -> None:
    async for change in watch:
        rows += change.rows.values()
