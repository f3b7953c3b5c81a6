"""The two clients of the live connection as the scenario drives them: in Python, and in Chromium."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from playwright.async_api import Page

from drivers.browser import chromium
from drivers.push_scenario import Heard, HeardRange
from drivers.wallet import Wallet
from statecast.orders.v1.order_pb2 import Order, OrderStatus
from statecast.push.v1.range_pb2 import MemberChange, Range, RangeChanged
from statecast.push.v1.subscription_pb2 import Removed
from statecast_client.push import Need, PushClient, PushRefusedError, RangeSubscription, Subscription, Update

CONNECT = """async (address) => {
    const { Statecast } = await import("/statecast.js");
    window.live = new Statecast(address, { credentials: window.credentials });
    window.heard = {};
}"""
SUBSCRIBE = """([name, store, group]) => {
    const heard = { updates: [], recovered: null, refused: null, reason: "" };
    const subscription = window.live.subscribe(store, { group }, {
        intervalMs: 1,
        onStart: ({ recovered }) => { heard.recovered = recovered; },
        onUpdate: ({ row, position }) => heard.updates.push([Number(position.offset), row?.status ?? ""]),
        onError: ({ code, message }) => { heard.refused = code; heard.reason = message; },
    });
    window.heard[name] = { heard, subscription };
}"""

WATCH_RANGE = """([name, store, group]) => {
    const heard = { changes: [], recovered: null, refused: null };
    const subscription = window.live.watchRange(store, group, {
        reverse: true,
        intervalMs: 1,
        onStart: ({ recovered }) => { heard.recovered = recovered; },
        onChange: ({ change, key, row }) => heard.changes.push([change, key.member, row?.status ?? ""]),
        onError: ({ code }) => { heard.refused = code; },
    });
    window.heard[name] = { heard, subscription };
}"""


def word(status: str) -> str:
    """The contract's name of a status as a word: `Paid`."""
    return status.removeprefix("ORDER_STATUS_").capitalize()


class PythonParticipant:
    """statecast_client.push."""

    def __init__(self, client: PushClient) -> None:
        self._client = client
        self._subscriptions: dict[str, Subscription | RangeSubscription] = {}
        self._heard: dict[str, Heard] = {}
        self._heard_ranges: dict[str, HeardRange] = {}
        self.readers: list[asyncio.Task[None]] = []

    async def subscribe(self, name: str, store: str, group: str) -> None:
        """As the scenario asks."""
        self._subscriptions[name] = order = await self._client.subscribe(store, group, interval_ms=1)
        self._heard[name] = heard = Heard()
        self.readers.append(asyncio.create_task(_read(order, heard)))

    async def watch_range(self, name: str, store: str, group: str) -> None:
        """As the scenario asks."""
        watched = Range(store=store, group=group, reverse=True)
        self._subscriptions[name] = orders = await self._client.watch_range(watched, interval_ms=1)
        self._heard_ranges[name] = heard = HeardRange()
        self.readers.append(asyncio.create_task(_read_range(orders, heard)))

    async def unsubscribe(self, name: str) -> None:
        """As the scenario asks."""
        await self._subscriptions[name].unsubscribe()

    async def heard(self, name: str) -> Heard:
        """As the scenario asks."""
        self._heard[name].recovered = self._subscriptions[name].recovered
        return self._heard[name]

    async def heard_range(self, name: str) -> HeardRange:
        """As the scenario asks."""
        self._heard_ranges[name].recovered = self._subscriptions[name].recovered
        return self._heard_ranges[name]


class BrowserParticipant:
    """statecast.js in a page of Chromium."""

    def __init__(self, page: Page) -> None:
        self._page = page

    async def subscribe(self, name: str, store: str, group: str) -> None:
        """As the scenario asks."""
        await self._page.evaluate(SUBSCRIBE, [name, store, group])

    async def watch_range(self, name: str, store: str, group: str) -> None:
        """As the scenario asks."""
        await self._page.evaluate(WATCH_RANGE, [name, store, group])

    async def unsubscribe(self, name: str) -> None:
        """As the scenario asks."""
        await self._page.evaluate("(name) => window.heard[name].subscription.unsubscribe()", name)

    async def heard(self, name: str) -> Heard:
        """As the scenario asks."""
        told = await self._told(name)
        updates = [(offset, word(status)) for offset, status in told["updates"]]
        return Heard(updates, told["recovered"], told["refused"], told["reason"])

    async def heard_range(self, name: str) -> HeardRange:
        """As the scenario asks."""
        told = await self._told(name)
        changes = [(change, member, word(status)) for change, member, status in told["changes"]]
        return HeardRange(changes, told["recovered"], told["refused"])

    async def _told(self, name: str) -> dict[str, Any]:
        told: dict[str, Any] = await self._page.evaluate("(name) => window.heard[name].heard", name)
        return told


@asynccontextmanager
async def python_participant(
    address: str, headers: Mapping[str, str], wallet: Wallet | None = None
) -> AsyncIterator[PythonParticipant]:
    """The Python client, connected to `host:port` with the headers, or with those of a wallet beside them."""

    async def credentials(need: Need) -> Mapping[str, str]:
        assert wallet is not None
        return {**headers, **wallet(need)}

    given = headers if wallet is None else credentials
    async with PushClient(f"ws://{address}/v1/stream", credentials=given) as client:
        participant = PythonParticipant(client)
        yield participant
    await asyncio.gather(*participant.readers)


@asynccontextmanager
async def browser_participant(
    address: str, headers: Mapping[str, str], wallet: Wallet | None = None
) -> AsyncIterator[BrowserParticipant]:
    """The JavaScript client in a page from `host:port`, with the headers of a wallet if there is one.

    Its browser sends the other headers, as a gateway would add them.
    """
    async with chromium() as browser:
        context = await browser.new_context(extra_http_headers=dict(headers))
        page = await context.new_page()
        if wallet is not None:
            await page.expose_function("credentials", wallet)
        await page.goto(f"http://{address}/")
        await page.evaluate(CONNECT, f"ws://{address}/v1/stream")
        yield BrowserParticipant(page)


async def _read(order: Subscription, heard: Heard) -> None:
    try:
        async for update in order:
            heard.updates.append((update.position.offset, _status(update)))
    except PushRefusedError as refusal:
        heard.refused, heard.reason = refusal.code, str(refusal)


async def _read_range(orders: RangeSubscription, heard: HeardRange) -> None:
    try:
        async for told in orders:
            if isinstance(told, RangeChanged):
                change = MemberChange.Name(told.change).removeprefix("MEMBER_CHANGE_").lower()
                heard.changes.append((change, told.key.member, _status(told)))
    except PushRefusedError as refusal:
        heard.refused = refusal.code


def _status(update: Update | RangeChanged) -> str:
    if isinstance(update, Removed) or not update.HasField("row"):
        return ""
    order = Order()
    assert update.row.Unpack(order)
    return word(OrderStatus.Name(order.status))
