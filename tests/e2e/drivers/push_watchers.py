"""Watchers of keys and ranges by the Python client, which reconnects by itself; they keep all updates."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from typing_extensions import override

from drivers.gateway_client import Gateway, GatewayClient
from drivers.loop_thread import LoopThread
from statecast.push.v1.range_pb2 import Range
from statecast_client.push import PushClient, RangeSubscription, RangeUpdate, Subscription, Update

MAX_MEMBERS = 600  # of one customer, and few enough for what one consumer may watch

T = TypeVar("T")


@dataclass(repr=False)
class PushWatcher:
    """One client and what it watches: orders, and all orders of customers; `updates` and `ranges` are by their ids."""

    order_ids: Sequence[str]
    customers: Sequence[str]
    interval_ms: int
    updates: dict[str, list[Update]] = field(default_factory=lambda: defaultdict(list))
    ranges: dict[str, list[RangeUpdate]] = field(default_factory=lambda: defaultdict(list))
    subscriptions: list[Subscription | RangeSubscription] = field(default_factory=list)
    attempts: int = 0
    """How often it has begun to connect."""

    async def watch(self, gateway: Gateway, phone: GatewayClient) -> None:
        """Watches until it is cancelled. Raises PushRefusedError, in a group, when a subscription is refused."""

        async def credentials(_: str) -> Mapping[str, str]:
            self.attempts += 1
            return phone.headers

        address, tls = f"{gateway.wss}/v1/stream", gateway.tls()
        async with PushClient(address, credentials=credentials, tls=tls) as client, asyncio.TaskGroup() as readers:
            for customer in self.customers:
                watched = Range(store="orders-by-customer", group=customer, limit=MAX_MEMBERS)
                orders = await client.watch_range(watched, interval_ms=self.interval_ms)
                self.subscriptions.append(orders)
                readers.create_task(_keep(orders, self.ranges[customer].append))
            for order_id in self.order_ids:
                order = await client.subscribe("orders-by-key", order_id, interval_ms=self.interval_ms)
                self.subscriptions.append(order)
                readers.create_task(_keep(order, self.updates[order_id].append))

    @property
    def has_begun(self) -> bool:
        """Whether all subscriptions are in force and have a position to go on from."""
        count = len(self.customers) + len(self.order_ids)
        return len(self.subscriptions) == count and all(each.position is not None for each in self.subscriptions)


class PushWatchers(LoopThread):
    """Clients that watch through the gateway, on a thread of their own, while it is entered."""

    def __init__(self, gateway: Gateway, phone: GatewayClient, watchers: Sequence[PushWatcher]) -> None:
        super().__init__("push-watchers")
        self.all = watchers
        self._gateway = gateway
        self._phone = phone

    def assert_begun(self) -> None:
        """Asserts that all subscriptions of all watchers are in force. Raises what has ended the watchers."""
        self.check()
        assert all(watcher.has_begun for watcher in self.all)

    @override
    async def watch_all(self) -> None:
        async with asyncio.TaskGroup() as watchers:
            for watcher in self.all:
                watchers.create_task(watcher.watch(self._gateway, self._phone))


async def _keep(updates: AsyncIterator[T], keep: Callable[[T], None]) -> None:
    async for update in updates:
        keep(update)
