"""The two push clients under the scenario: the one in Python, and the one in JavaScript in Chromium."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from playwright.async_api import Page
from typing_extensions import override

from statecast_client.push import Need, PushClient, PushRefusedError, Watch
from testkit.chromium import chromium
from testkit.push_scenario import ClientCredentials, Received, ScenarioClient

CONNECT = """async (address) => {
    const { Statecast } = await import("/statecast.js");
    window.opened = 0;
    const onState = (state) => { window.opened += state === "open"; };
    window.live = new Statecast(address, { credentials: window.credentials, onState });
    window.received = {};
}"""
WATCH = """([name, store, group]) => {
    const received = { changes: [], resumed: null, refused: null, reason: "" };
    let began = 0;
    const watch = window.live.watch({ store, group, interval_ms: 1 }, {
        onRows: (news) => {
            if (began !== window.opened) received.resumed = !news.began;
            began = window.opened;
            for (const { key, row } of news.changes) received.changes.push([key, row?.status ?? ""]);
        },
        onEnd: ({ code, message }) => Object.assign(received, { refused: code, reason: message }),
    });
    window.received[name] = { received, watch };
}"""
RECEIVED = """(name) => {
    const { received, watch } = window.received[name];
    const rows = [...watch.rows].map(([key, { row }]) => [key, row.status]);
    return { ...received, rows, current: watch.isCurrent };
}"""


def word(status: str) -> str:
    """Returns the contract's name of a status as a word: `Paid`."""
    return status.removeprefix("ORDER_STATUS_").capitalize()


class PythonScenarioClient(ScenarioClient):
    """statecast_client.push."""

    def __init__(self, client: PushClient) -> None:
        self._client = client
        self._watches: dict[str, Watch] = {}
        self._received: dict[str, Received] = {}
        self.readers: list[asyncio.Task[None]] = []

    @override
    async def watch(self, name: str, store: str, group: str) -> None:
        self._watches[name] = watch = self._client.watch(store, group, interval_ms=1)
        self._received[name] = received = Received()
        self.readers.append(asyncio.create_task(_read(watch, received)))

    @override
    async def unwatch(self, name: str) -> None:
        self._watches[name].unwatch()

    @override
    async def received(self, name: str) -> Received:
        received, watch = self._received[name], self._watches[name]
        received.rows = {key: word(row.value["status"]) for key, row in watch.rows.items()}
        received.resumed, received.current = watch.resumed, watch.current
        return received


class BrowserScenarioClient(ScenarioClient):
    """statecast.js in a page of Chromium."""

    def __init__(self, page: Page) -> None:
        self.page = page

    @override
    async def watch(self, name: str, store: str, group: str) -> None:
        await self.page.evaluate(WATCH, [name, store, group])

    @override
    async def unwatch(self, name: str) -> None:
        await self.page.evaluate("(name) => window.received[name].watch.end()", name)

    @override
    async def received(self, name: str) -> Received:
        received: dict[str, Any] = await self.page.evaluate(RECEIVED, name)
        changes = [(key, word(status)) for key, status in received.pop("changes")]
        rows = {key: word(status) for key, status in received.pop("rows")}
        return Received(changes, rows, **received)


@asynccontextmanager
async def python_client(
    address: str, headers: Mapping[str, str], credentials: ClientCredentials | None = None
) -> AsyncIterator[PythonScenarioClient]:
    """Connects the Python client to `host:port` with the headers, and with those of `credentials` beside them."""

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
    """Opens the JavaScript client in a page from `host:port`, with the headers of `credentials` if there are any.

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


async def _read(watch: Watch, received: Received) -> None:
    try:
        async for change in watch:
            received.changes += [(key, word(row.value["status"])) for key, row in change.rows.items()]
            received.changes += [(key, "") for key in change.left]
    except PushRefusedError as refusal:
        received.refused, received.reason = refusal.code, str(refusal)
