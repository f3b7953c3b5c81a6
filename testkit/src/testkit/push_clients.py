"""The two push clients under the scenario: the one in Python, and the one in JavaScript in Chromium."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from playwright.async_api import Page
from typing_extensions import override

from statecast.orders.v1.order_pb2 import Order, OrderStatus
from statecast.push.v1.range_pb2 import MemberChange, Range, RangeChanged, RangeWatched
from statecast.push.v1.subscription_pb2 import Removed
from statecast_client.push import Need, PushClient, PushRefusedError, RangeSubscription, Subscription, Update
from testkit.chromium import chromium
from testkit.push_scenario import ClientCredentials, Received, ReceivedRange, ScenarioClient

CONNECT = """async (address) => {
    const { Statecast } = await import("/statecast.js");
    window.live = new Statecast(address, { credentials: window.credentials });
    window.received = {};
}"""
SUBSCRIBE = """([name, store, group]) => {
    const received = { updates: [], recovered: null, refused: null, reason: "" };
    const subscription = window.live.subscribe(store, { group }, {
        intervalMs: 1,
        onStart: ({ recovered }) => { received.recovered = recovered; },
        onUpdate: ({ row, position }) => received.updates.push([Number(position.offset), row?.status ?? ""]),
        onError: ({ code, message }) => { received.refused = code; received.reason = message; },
    });
    window.received[name] = { received, subscription };
}"""

WATCH_RANGE = """([name, store, group]) => {
    const received = { changes: [], recovered: null, refused: null, members: null };
    const subscription = window.live.watchRange(store, group, {
        reverse: true,
        intervalMs: 1,
        onStart: ({ recovered, members }) => { Object.assign(received, { recovered, members }); },
        onChange: ({ change, key, row }) => received.changes.push([change, key.member, row?.status ?? ""]),
        onError: ({ code }) => { received.refused = code; },
    });
    window.received[name] = { received, subscription };
}"""


def word(status: str) -> str:
    """The contract's name of a status as a word: `Paid`."""
    return status.removeprefix("ORDER_STATUS_").capitalize()


class PythonScenarioClient(ScenarioClient):
    """statecast_client.push."""

    def __init__(self, client: PushClient) -> None:
        self._client = client
        self._subscriptions: dict[str, Subscription | RangeSubscription] = {}
        self._received: dict[str, Received] = {}
        self._received_ranges: dict[str, ReceivedRange] = {}
        self.readers: list[asyncio.Task[None]] = []

    @override
    async def subscribe(self, name: str, store: str, group: str) -> None:
        self._subscriptions[name] = order = await self._client.subscribe(store, group, interval_ms=1)
        self._received[name] = received = Received()
        self.readers.append(asyncio.create_task(_read(order, received)))

    @override
    async def watch_range(self, name: str, store: str, group: str) -> None:
        watched = Range(store=store, group=group, reverse=True)
        self._subscriptions[name] = orders = await self._client.watch_range(watched, interval_ms=1)
        self._received_ranges[name] = received = ReceivedRange()
        self.readers.append(asyncio.create_task(_read_range(orders, received)))

    @override
    async def unsubscribe(self, name: str) -> None:
        await self._subscriptions[name].unsubscribe()

    @override
    async def received(self, name: str) -> Received:
        self._received[name].recovered = self._subscriptions[name].recovered
        return self._received[name]

    @override
    async def received_range(self, name: str) -> ReceivedRange:
        self._received_ranges[name].recovered = self._subscriptions[name].recovered
        return self._received_ranges[name]


class BrowserScenarioClient(ScenarioClient):
    """statecast.js in a page of Chromium."""

    def __init__(self, page: Page) -> None:
        self._page = page

    @override
    async def subscribe(self, name: str, store: str, group: str) -> None:
        await self._page.evaluate(SUBSCRIBE, [name, store, group])

    @override
    async def watch_range(self, name: str, store: str, group: str) -> None:
        await self._page.evaluate(WATCH_RANGE, [name, store, group])

    @override
    async def unsubscribe(self, name: str) -> None:
        await self._page.evaluate("(name) => window.received[name].subscription.unsubscribe()", name)

    @override
    async def received(self, name: str) -> Received:
        received = await self._evaluate(name)
        updates = [(offset, word(status)) for offset, status in received["updates"]]
        return Received(updates, received["recovered"], received["refused"], received["reason"])

    @override
    async def received_range(self, name: str) -> ReceivedRange:
        received = await self._evaluate(name)
        changes = [(change, member, word(status)) for change, member, status in received["changes"]]
        return ReceivedRange(changes, received["recovered"], received["refused"], received["members"])

    async def _evaluate(self, name: str) -> dict[str, Any]:
        received: dict[str, Any] = await self._page.evaluate("(name) => window.received[name].received", name)
        return received


@asynccontextmanager
async def python_client(
    address: str, headers: Mapping[str, str], credentials: ClientCredentials | None = None
) -> AsyncIterator[PythonScenarioClient]:
    """The Python client, connected to `host:port` with the headers, and with those of `credentials` beside them."""

    async def all_headers(need: Need) -> Mapping[str, str]:
        assert credentials is not None
        return {**headers, **credentials(need)}

    async with PushClient(f"ws://{address}/v1/stream", credentials=all_headers if credentials else headers) as client:
        scenario_client = PythonScenarioClient(client)
        yield scenario_client
    await asyncio.gather(*scenario_client.readers)


@asynccontextmanager
async def browser_client(
    address: str, headers: Mapping[str, str], credentials: ClientCredentials | None = None
) -> AsyncIterator[BrowserScenarioClient]:
    """The JavaScript client in a page from `host:port`, with the headers of `credentials` if there are any.

    Its browser sends the other headers, as a gateway would add them.
    """
    async with chromium() as browser:
        context = await browser.new_context(extra_http_headers=dict(headers))
        page = await context.new_page()
        if credentials is not None:
            await page.expose_function("credentials", credentials)
        await page.goto(f"http://{address}/")
        await page.evaluate(CONNECT, f"ws://{address}/v1/stream")
        yield BrowserScenarioClient(page)


async def _read(order: Subscription, received: Received) -> None:
    try:
        async for update in order:
            received.updates.append((update.position.offset, _status(update)))
    except PushRefusedError as refusal:
        received.refused, received.reason = refusal.code, str(refusal)


async def _read_range(orders: RangeSubscription, received: ReceivedRange) -> None:
    try:
        async for change in orders:
            if isinstance(change, RangeWatched):
                received.members = change.members
            else:
                kind = MemberChange.Name(change.change).removeprefix("MEMBER_CHANGE_").lower()
                received.changes.append((kind, change.key.member, _status(change)))
    except PushRefusedError as refusal:
        received.refused = refusal.code


def _status(update: Update | RangeChanged) -> str:
    if isinstance(update, Removed) or not update.HasField("row"):
        return ""
    order = Order()
    assert update.row.Unpack(order)
    return word(OrderStatus.Name(order.status))
