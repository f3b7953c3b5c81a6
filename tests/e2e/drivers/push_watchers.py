"""Watchers of keys and ranges by the Python client, which reconnects by itself; they keep all updates."""

import asyncio
import threading
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Self, TypeVar

from drivers.gateway_client import Gateway, GatewayClient
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


class PushWatchers:
    """Clients that watch through the gateway, on a thread of their own, while it is entered."""

    def __init__(self, gateway: Gateway, phone: GatewayClient, watchers: Sequence[PushWatcher]) -> None:
        self.all = watchers
        self._gateway = gateway
        self._phone = phone
        self._thread = threading.Thread(target=self._run, name="push-watchers")
        self._ended: BaseException | None = None

    def __enter__(self) -> Self:
        self._loop = asyncio.new_event_loop()
        self._task = self._loop.create_task(self._watch_all())
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._task.cancel)
        self._thread.join()
        self._loop.close()

    def check(self) -> None:
        """Raises what has ended the watchers, if anything has."""
        if self._ended is not None:
            raise self._ended

    def _run(self) -> None:
        try:
            self._loop.run_until_complete(self._task)
        except asyncio.CancelledError:
            return
        except BaseException as error:  # noqa: BLE001  `check` raises it where it is seen
            self._ended = error

    async def _watch_all(self) -> None:
        async with asyncio.TaskGroup() as watchers:
            for watcher in self.all:
                watchers.create_task(watcher.watch(self._gateway, self._phone))


async def _keep(updates: AsyncIterator[T], keep: Callable[[T], None]) -> None:
    async for update in updates:
        keep(update)
