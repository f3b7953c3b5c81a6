"""A session with a socket and a hub in the hands of a test."""

import asyncio
import json
from collections.abc import Mapping
from typing import Any

from statecast.orders.v1.order_pb2 import Order
from testkit.ws_edge.edge import Clock, until
from testkit.ws_edge.fake_query_service import SHIPPED_STORES
from ws_edge.auth.gateway import Caller, Tickets
from ws_edge.auth.quotas import Quota, Quotas
from ws_edge.codec.order_codec import OrderCodec
from ws_edge.hub.hub import Hub
from ws_edge.hub.watch import Subscription, Watch
from ws_edge.metrics import Metrics
from ws_edge.model.authorization import Consumer
from ws_edge.model.states import KeyState, Position, StoreKey
from ws_edge.session.session import Session, SessionContext
from ws_edge.settings import Settings

ALICE = Caller(Consumer("customer-0001", "alice", False))
KEY = StoreKey("orders-by-key", "12345")


class Socket:
    """The two ends of an ASGI WebSocket; `open` says whether the client reads."""

    def __init__(self) -> None:
        self.received: asyncio.Queue[Mapping[str, Any]] = asyncio.Queue()
        self.sent: list[dict[str, Any]] = []
        self.open = asyncio.Event()
        self.open.set()

    async def send(self, event: dict[str, Any]) -> None:
        """Sends an event, once the client reads."""
        await self.open.wait()
        self.sent.append(json.loads(event["text"]) if "text" in event else event)

    def asks(self, **document: Any) -> None:
        """The client asks for the updates of order 12345; fields of `document` replace the defaults."""
        document = {"type": "order_updates_request", "order_id": "12345"} | document
        self.received.put_nowait({"type": "websocket.receive", "text": json.dumps(document)})

    def leaves(self) -> None:
        """The client closes the socket."""
        self.received.put_nowait({"type": "websocket.disconnect", "code": 1001})


def version(offset: int, owner: str = "customer-0001") -> KeyState:
    """The order as it stands at an offset."""
    return KeyState(KEY, Position(1, offset), Order(order_id="12345", tracking_number=str(offset)), owner)


def session_context() -> SessionContext:
    """Narrow limits, and a hub with answers given by hand."""
    clock = Clock()
    settings = Settings.model_construct(max_interval_ms=5000, max_subscriptions=2, max_replies=4)
    tickets = Tickets(["throw-away"], clock, 60.0)
    return SessionContext(Hub(clock, 0.025, 3.0), SHIPPED_STORES, settings, Metrics(), tickets, clock, clock)


def begin(context: SessionContext) -> tuple[Socket, Session, asyncio.Task[int]]:
    """A session of alice that is being served on `/update/orders`."""
    socket = Socket()
    quota = Quota(sockets=1, subscriptions=100, frames_per_s=100, burst_s=5)
    reservation = Quotas(quota, quota, context.clock).reserve(ALICE)
    session = Session(context, ALICE, reservation, OrderCodec(), socket.send)
    return socket, session, asyncio.create_task(session.run(socket.received.get))


def only(watch: Watch) -> Subscription:
    """The only subscription of a key."""
    (subscription,) = watch.subscriptions
    return subscription


async def due(context: SessionContext, keys: int = 1) -> list[Watch]:
    """The keys that are asked for, when there are so many."""
    watches: list[Watch] = []

    def enough() -> bool:
        watches.extend(context.hub.take_due())
        return len(watches) >= keys

    await until(enough)
    return watches


async def begin_and_stop_reading(context: SessionContext) -> tuple[Socket, Session, asyncio.Task[int], Watch]:
    """A session that watches a key; its client has been sent the first version and reads nothing from then on."""
    socket, session, task = begin(context)
    socket.asks()
    (watch,) = await due(context)
    context.hub.answered(watch, version(1))
    await until(lambda: len(socket.sent) == 1)
    socket.open.clear()
    return socket, session, task, watch
