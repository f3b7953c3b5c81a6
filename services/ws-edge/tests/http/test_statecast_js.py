"""The events that end the JavaScript client, those that do not, and how a page sees why. Its server is scripted."""

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from playwright.async_api import Error, Page, Route, WebSocketRoute

from testkit.chromium import chromium
from testkit.ws_edge.edge import until
from ws_edge.http.pages import SHIPPED

ORIGIN = "http://edge.test"
CONNECT = """async (tokens) => {
    const { Statecast, StatecastError } = await import("/statecast.js");
    window.needs = [];
    window.refusals = [];
    window.addEventListener("unhandledrejection", () => window.refusals.push("unhandled"));
    const credentials = tokens && ((need) => {
        window.needs.push(need);
        const token = tokens.shift() ?? "last";
        if (token === "signed out") throw new StatecastError("signed_out", "the person has left");
        if (token === "no issuer") throw new TypeError("the issuer is down");
        return { Authorization: token };
    });
    window.live = new Statecast("/v1/stream", { credentials });
    window.live.addEventListener("error", ({ detail }) => window.refusals.push(detail.code));
    const onError = ({ code }) => window.refusals.push(`of a key: ${code}`);
    for (const group of ["a", "b"]) window.live.subscribe("orders-by-key", { group }, { onError });
}"""
RANGE = {"store": "orders-by-customer", "group": "customer-1"}
STATE_AND_REASON = "() => [window.live.state, window.live.reason?.code ?? null]"


class Server:
    """Answers a page with the files of the edge, and scripted sockets and tickets."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.sockets: list[str] = []
        self.close_codes: list[int] = []
        self.ticket_answers: list[tuple[int, dict[str, str]]] = []
        self.range_answers: list[list[dict[str, Any]]] = []
        """The frames that answer each `watch_range`; the socket is closed after all of them but the last."""
        self.resume_positions: list[Any] = []
        self.heard: list[dict[str, Any]] = []
        self.silent = False
        """Whether it reads and says nothing, as a process that is stopped."""
        self.key_requests: dict[str, dict[str, Any]] = {}
        """The last `subscribe` of each group."""
        self.key_answers: dict[str, list[dict[str, Any]]] = {}
        """The frames that answer it."""

    async def start(self) -> None:
        await self.page.route(f"{ORIGIN}/**", self._answer)
        await self.page.route_web_socket("**/stream*", self._accept)
        await self.page.clock.install()
        await self.page.goto(f"{ORIGIN}/blank")

    async def connect(self, *tokens: str) -> None:
        """Makes a client; without tokens it has no credentials."""
        await self.page.evaluate(CONNECT, list(tokens) or None)

    async def reason_in(self, state: str) -> Any:
        """Waits for the state; returns the code of the reason."""
        await self.page.wait_for_function("(state) => window.live.state === state", arg=state, polling=10)
        return (await self.page.evaluate(STATE_AND_REASON))[1]

    async def probed(self, count: int) -> None:
        """Waits until the client has asked so often whether the server lives."""
        await until(lambda: sum("unwatch_query" in frame for frame in self.heard) >= count)

    async def asked(self, group: str, count: int) -> None:
        """Waits until the client has asked so often for a key."""
        key = {"group": group}
        await until(lambda: sum(frame.get("subscribe", {}).get("key") == key for frame in self.heard) == count)

    async def refusals(self) -> Any:
        """All refusals that the client has reported to the page."""
        return await self.page.evaluate("() => window.refusals")

    async def needs(self) -> Any:
        """The reasons for which the client has requested credentials."""
        return await self.page.evaluate("() => window.needs")

    async def _accept(self, socket: WebSocketRoute) -> None:
        self.sockets.append(socket.url.removeprefix(ORIGIN.replace("http", "ws")))
        socket.on_message(lambda text: self._hear(socket, json.loads(text)))
        if self.close_codes:
            await socket.close(code=self.close_codes.pop(0), reason="so it is")

    async def _hear(self, socket: WebSocketRoute, frame: dict[str, Any]) -> None:
        self.heard.append(frame)
        if self.silent:
            return
        if "unwatch_query" in frame:
            socket.send(json.dumps({"id": frame["id"], "query_unwatched": frame["unwatch_query"]}))
        if "subscribe" in frame:
            group = frame["subscribe"]["key"]["group"]
            self.key_requests[group] = frame["subscribe"]
            answers = self.key_answers.get(group, [])
            while answers and "error" in answers[0]:  # of the first requests, one each
                socket.send(json.dumps({"id": frame["id"], **answers.pop(0)}))
                return
            for answer in answers:
                socket.send(json.dumps({"id": frame["id"], **answer}))
        if "watch_range" in frame:
            self.resume_positions.append(frame["watch_range"]["after"])
            for answer in self.range_answers.pop(0):
                socket.send(json.dumps({"id": frame["id"], **answer}))
            if self.range_answers:
                await socket.close(code=1001)

    async def _answer(self, route: Route) -> None:
        path = route.request.url.removeprefix(ORIGIN)
        if path == "/v1/tickets":
            status, headers = self.ticket_answers.pop(0) if self.ticket_answers else (200, {})
            await route.fulfill(status=status, headers=headers, json={"ticket": "t"} if status == 200 else {})
        elif path == "/statecast.js":
            await route.fulfill(path=SHIPPED / "statecast.js", content_type="text/javascript")
        else:
            await route.fulfill(body="<!doctype html>", content_type="text/html")


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    async with chromium() as browser:
        scripted = Server(await browser.new_page())
        await scripted.start()
        yield scripted


@pytest.mark.parametrize("code", [1009, 4403, 4404, 4999])
async def test_a_fatal_close_code_ends_all_subscriptions_with_its_reason(server: Server, code: int) -> None:
    server.close_codes = [code]
    await server.connect("a", "b")

    assert await server.reason_in("closed") == str(code)
    assert await server.refusals() == [str(code), f"of a key: {code}", f"of a key: {code}"]
    assert await server.needs() == ["connect"]


@pytest.mark.parametrize("code", [1001, 1011, 1012, 4408])
async def test_after_other_close_codes_the_client_connects_again(server: Server, code: int) -> None:
    server.close_codes = [code]
    await server.connect()
    await server.reason_in("open")

    assert server.sockets == ["/v1/stream", "/v1/stream"]
    assert await server.refusals() == []


async def test_expired_credentials_are_requested_again_once(server: Server) -> None:
    server.close_codes = [4401, 4401]
    await server.connect("old", "new", "another")

    assert await server.reason_in("closed") == "4401"
    assert await server.needs() == ["connect", "expired"]
    assert server.sockets == ["/v1/tickets/stream"] * 2


async def test_without_credentials_an_expiry_ends_the_client(server: Server) -> None:
    server.close_codes = [4401]
    await server.connect()

    assert await server.reason_in("closed") == "4401"


@pytest.mark.parametrize(("status", "needs"), [(401, ["connect", "expired"]), (403, ["connect"]), (404, ["connect"])])
async def test_refused_credentials_end_the_client(server: Server, status: int, needs: list[str]) -> None:
    server.ticket_answers = [(status, {})] * 2
    await server.connect("old", "new")

    assert await server.reason_in("closed") == str(status)
    assert await server.needs() == needs
    assert server.sockets == []


async def test_a_slow_client_waits_some_seconds(server: Server) -> None:
    server.close_codes = [4408]
    await server.connect()

    assert await server.reason_in("waiting") == "4408"


async def test_the_client_reconnects_when_the_server_said(server: Server) -> None:
    server.ticket_answers = [(503, {"Retry-After": "20"})]
    await server.connect("a")

    assert await server.reason_in("waiting") == "503"
    await server.page.clock.run_for(15_000)
    assert await server.reason_in("waiting") == "503"
    await server.page.clock.run_for(6_000)
    assert await server.reason_in("open") is None


async def test_credentials_that_are_unavailable_are_requested_again(server: Server) -> None:
    await server.connect("no issuer", "a")
    await server.reason_in("open")

    assert await server.needs() == ["connect", "connect"]
    assert await server.refusals() == []


async def test_a_wrong_address_is_refused_at_once(server: Server) -> None:
    making = "import('/statecast.js').then(({ Statecast }) => new Statecast('gateway:8080'))"

    with pytest.raises(Error, match="gateway:8080 is not that of a socket"):
        await server.page.evaluate(making)


async def test_credentials_of_a_signed_out_person_end_the_client(server: Server) -> None:
    await server.connect("signed out")

    assert await server.reason_in("closed") == "signed_out"
    assert await server.refusals() == ["signed_out"] + ["of a key: signed_out"] * 2


async def test_a_key_is_told_again_where_that_is_asked_for(server: Server) -> None:
    key, position = {"group": "c"}, {"epoch": "7", "offset": "5"}
    changed = {"changed": {"store": "orders-by-key", "key": key, "position": position}}
    server.key_answers["c"] = [{"subscribed": {"start": "START_SNAPSHOT"}}, changed, changed, changed]
    await server.connect()
    await server.reason_in("open")
    await server.page.evaluate("""() => {
        window.positions = [];
        const onUpdate = ({ position }) => window.positions.push(position);
        window.live.subscribe("orders-by-key", { group: "c" }, { repeat: true, intervalMs: 500, onUpdate });
    }""")
    await server.page.wait_for_function("() => window.positions.length === 3", polling=10)

    assert await server.page.evaluate("() => window.positions") == [position] * 3
    assert (server.key_requests["c"]["repeat"], server.key_requests["c"]["interval_ms"]) == (True, 500)
    assert "repeat" not in server.key_requests["a"]


async def test_an_interrupted_snapshot_of_a_range_is_requested_again(server: Server) -> None:
    through = {"epoch": "7", "offset": "9"}
    begun = {"range": RANGE, "start": "START_SNAPSHOT"}
    entered = {"range": RANGE, "change": "MEMBER_CHANGE_ENTERED", "key": {"member": "a"}, "position": {"epoch": "7"}}
    server.range_answers = [
        [{"range_watched": {**begun, "through": through}}],
        [{"range_watched": begun}, {"range_changed": entered}],
        [{"range_watched": {**begun, "through": through}}],
    ]
    await server.connect()
    await server.page.evaluate("([store, group]) => { window.live.watchRange(store, group); }", list(RANGE.values()))
    await server.page.wait_for_function("() => window.live.state === 'open'", polling=10)
    while server.range_answers:
        await server.page.wait_for_timeout(10)

    assert server.resume_positions == [None, through, None]


async def test_a_server_that_falls_silent_is_left_after_45_seconds(server: Server) -> None:
    await server.connect()
    await server.reason_in("open")
    for count in range(1, 6):
        await server.page.clock.run_for(15_000)
        await server.probed(count)
    kept = await server.reason_in("open"), len(server.sockets)
    server.silent = True
    await server.page.evaluate("""() => {
        window.reasons = [];
        window.live.addEventListener("state", () => window.live.reason && window.reasons.push(window.live.reason.code));
    }""")
    await server.page.clock.run_for(46_000)
    await until(lambda: len(server.sockets) == 2)

    assert kept == (None, 1)
    assert "unreachable" in await server.page.evaluate("() => window.reasons")


async def test_a_handshake_without_an_answer_ends_after_10_seconds(server: Server) -> None:
    await server.page.evaluate("""() => {
        window.WebSocket = class { constructor() { window.attempts = (window.attempts ?? 0) + 1; } close() {} };
    }""")
    await server.connect()
    await server.page.clock.run_for(10_000)
    await server.page.wait_for_function("() => window.attempts >= 2", polling=10)

    assert await server.page.evaluate("() => window.live.reason.code") == "unreachable"


async def test_a_socket_that_only_fails_counts_as_closed(server: Server) -> None:
    await server.page.evaluate("""() => {
        window.WebSocket = class { constructor() { setTimeout(() => this.onerror(new Event("error"))); } close() {} };
    }""")
    await server.connect()
    await server.page.wait_for_function("() => window.live.reason", polling=10)

    assert await server.page.evaluate("() => window.live.reason.code") == "unreachable"


@pytest.mark.parametrize(
    "event", ["window.dispatchEvent(new Event('online'))", "document.dispatchEvent(new Event('visibilitychange'))"]
)
async def test_a_tab_or_a_network_that_comes_back_connects_at_once(server: Server, event: str) -> None:
    server.close_codes = [4408]
    await server.connect()
    await server.reason_in("waiting")
    await server.page.evaluate(event)

    assert await server.reason_in("open") is None


async def test_a_row_that_cannot_be_read_ends_no_subscription(server: Server) -> None:
    position = {"epoch": "7", "offset": "5"}
    changed = {"changed": {"store": "orders-by-key", "key": {"group": "c"}, "position": position}}
    unreadable = {"error": {"code": "unreadable_row", "message": "the row of orders-by-key/c"}}
    server.key_answers["c"] = [{"subscribed": {"start": "START_SNAPSHOT"}}, unreadable, changed]
    await server.connect()
    await server.reason_in("open")
    await server.page.evaluate("""() => {
        window.positions = [];
        const onUpdate = ({ position }) => window.positions.push(position);
        window.live.subscribe("orders-by-key", { group: "c" }, { onUpdate });
    }""")
    await server.page.wait_for_function("() => window.positions.length === 1", polling=10)

    assert await server.refusals() == ["unreadable_row"]
