"""For the edge's own tests: a real edge in front of a scripted query service, clocks and a recording subscriber."""

import asyncio
import json
import time
from base64 import urlsafe_b64encode
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from httpx import AsyncClient
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus
from websockets.http11 import Response
from websockets.typing import Subprotocol

from testkit.repository_files import DOMAINS
from testkit.waiting import scaled
from testkit.ws_edge.fake_query_service import FakeQueryService as FakeQueryService
from testkit.ws_edge.fake_query_service import FakeWriter
from ws_edge.__main__ import build, run
from ws_edge.auth.gateway import NOTHING
from ws_edge.server import listen
from ws_edge.settings import Settings


class Clock:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class SystemClock(Clock):
    """The time of this machine, which clients use to renew their access."""

    def __call__(self) -> float:
        return time.time()


async def until(condition: Callable[[], bool]) -> None:
    """Polls until the condition holds; raises TimeoutError when it does not within half a minute."""
    async with asyncio.timeout(30):
        while not condition():  # noqa: ASYNC110  the condition of a test cannot set an event
            await asyncio.sleep(0.005)


def claims(**times: float | None) -> str:
    """Returns the claims of a token as the gateway sends them."""
    payload = {name: moment for name, moment in times.items() if moment is not None}
    return urlsafe_b64encode(json.dumps(payload).encode()).rstrip(b"=").decode()


def gateway_headers(secret: str, consumer: str, groups: str, claims: str = NOTHING) -> dict[str, str]:
    """Returns the gateway's headers to the edge for a consumer at this machine.

    An empty id is one that it does not have. A gateway sends UTF-8. Clients of Python write headers as Latin-1, so each
    character here stands for a byte.
    """
    headers = {
        "X-Gateway-Secret": secret,
        "X-Gateway-Claims": claims,
        "X-Consumer-Custom-ID": consumer or NOTHING,
        "X-Consumer-Username": consumer or "operator",
        "X-Consumer-Groups": groups,
        "X-Forwarded-For": "127.0.0.1",
    }
    return {name: value.encode().decode("latin-1") for name, value in headers.items()}


SECRET = "throw-away-secret"
DEFAULTS = {
    "port": 0,
    "gateway_secret": SECRET,
    "domains": DOMAINS,
    "drain_notice_ms": 0,
    "drain_window_ms": 0,
    # A busy machine is not an outage.
    "query_timeout_ms": 20_000,
    "revocation_timeout_ms": 60_000,
}


QUICK = {"min_interval_ms": 20, "default_interval_ms": 20, "tick_ms": 5}
"""Short poll intervals, so that tests need not wait."""


async def refusal_of(connecting: connect) -> Response:
    """Returns the answer to a handshake that must fail."""
    try:
        socket = await connecting
    except InvalidStatus as refusal:
        return refusal.response
    await socket.close()
    raise AssertionError("the socket was opened")


def error_of(response: Response) -> str:
    """Returns the code in the body of a refusal."""
    return str(json.loads(response.body)["error"]["code"])


class RunningEdge:
    """A real edge on a free port before a FakeQueryService: `async with RunningEdge(max_sockets=1) as edge`.

    Credentials expire by its `wall_clock`, which is set by hand unless it is given.
    """

    def __init__(
        self,
        kafka: bool = False,
        beside: "RunningEdge | None" = None,
        wall_clock: Clock | None = None,
        stores: str | None = None,
        **settings: Any,
    ) -> None:
        """`kafka` lets it keep channels and revocations.

        `beside` is an edge that shares its query service with this one. `stores` has the stores of the query service in
        the form of a stores file, by default those that are shipped.
        """
        self.query: FakeQueryService = FakeQueryService() if beside is None else beside.query
        if stores is not None:
            self.query.define(stores)
        self.wall_clock = wall_clock or Clock()
        self._owns_query = beside is None
        self._kafka = kafka
        self._settings = settings

    async def __aenter__(self) -> "RunningEdge":
        address = await self.query.start() if self._owns_query else self.query.address
        settings = Settings.model_validate(DEFAULTS | QUICK | {"query_addresses": (address,)} | self._settings)
        listener = listen(settings)
        self.address = f"127.0.0.1:{listener.getsockname()[1]}"
        settings = settings.model_copy(update={"instance": self.address})
        writer = FakeWriter(self.query) if self._kafka else None
        self.parts = build(settings, writer, self.wall_clock)
        self._task = asyncio.create_task(run(self.parts, listener))
        await until(lambda: self.parts.server.started and self.parts.shard_watch.reason is None)
        return self

    async def __aexit__(self, *_: object) -> None:
        self.parts.server.handle_exit(15, None)
        await self._task
        if self._owns_query:
            await self.query.stop()

    def metric(self, name: str, **labels: str) -> float:
        """Returns the value of a metric, 0 without one; the name lacks the prefix of the service."""
        return self.parts.metrics.registry.get_sample_value(f"ws_edge_{name}", labels) or 0.0

    @property
    def throttled_s(self) -> float:
        """The seconds in which it did not read sockets."""
        return self.metric("throttled_seconds_total")

    def headers(
        self,
        consumer: str = "customer-0001",
        groups: str = "customers",
        expires_at: float | None = None,
        issued_at: float | None = None,
    ) -> dict[str, str]:
        """Returns the headers that the gateway would send; with a time, in seconds since 1970, as for a token."""
        is_token = expires_at is not None or issued_at is not None
        return gateway_headers(SECRET, consumer, groups, claims(exp=expires_at, iat=issued_at) if is_token else NOTHING)

    def client(self, consumer: str = "customer-0001", groups: str = "customers", **options: Any) -> AsyncClient:
        """Calls as the gateway makes them for a consumer; its options are those of AsyncClient."""
        headers = {name.encode(): value.encode("latin-1") for name, value in self.headers(consumer, groups).items()}
        known: dict[str, Any] = {
            "base_url": f"http://{self.address}",
            "headers": headers,
            "verify": False,
            "timeout": scaled(5.0),
        }
        return AsyncClient(**known | options)

    def socket(
        self,
        path: str = "/update/orders",
        consumer: str = "customer-0001",
        expires_at: float | None = None,
        headers: Mapping[str, str] | None = None,
        **options: Any,
    ) -> connect:
        """Connects a client as the gateway would, with more `headers`."""
        all_headers = self.headers(consumer, expires_at=expires_at) | dict(headers or {})
        return connect(f"ws://{self.address}{path}", additional_headers=all_headers, **options)

    def stranger_socket(self, path: str, subprotocols: Sequence[str] = ()) -> connect:
        """Connects a client that the gateway did not authenticate."""
        headers = {"X-Gateway-Secret": SECRET, "X-Forwarded-For": "127.0.0.1"}
        offers = [Subprotocol(offer) for offer in subprotocols] or None
        return connect(f"ws://{self.address}{path}", additional_headers=headers, subprotocols=offers)
