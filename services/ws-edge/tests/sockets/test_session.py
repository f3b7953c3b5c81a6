"""A session answers requests, keeps its limits, and sends the newest of what waited."""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from statecast.orders.v1.order_pb2 import Order
from ws_edge.access.gateway import Caller
from ws_edge.access.quotas import Quota, Quotas
from ws_edge.access.tickets import Tickets
from ws_edge.authorization import Consumer
from ws_edge.dialects.order_frames import OrderFrames
from ws_edge.hub.hub import Hub
from ws_edge.hub.subscription import Subscription, Watch
from ws_edge.metrics import Metrics
from ws_edge.sockets.session import Session
from ws_edge.sockets.surroundings import Limits, Surroundings
from ws_edge.states import Position, StoreKey, Version
from ws_edge.stores import SHIPPED, read
from ws_edge.testing.edge import Clock, until

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
        await self.open.wait()
        self.sent.append(json.loads(event["text"]) if "text" in event else event)

    def asks(self, **document: Any) -> None:
        document = {"type": "order_updates_request", "order_id": "12345"} | document
        self.received.put_nowait({"type": "websocket.receive", "text": json.dumps(document)})

    def leaves(self) -> None:
        self.received.put_nowait({"type": "websocket.disconnect", "code": 1001})


def version(offset: int, owner: str = "customer-0001") -> Version:
    return Version(KEY, Position(1, offset), Order(order_id="12345", tracking_number=str(offset)), owner)


@pytest.fixture
def around() -> Surroundings:
    clock = Clock()
    limits = Limits(1000, 100, 5000, max_subscriptions=2, max_replies=4, max_outbox_bytes=1000)
    tickets = Tickets(["throw-away"], clock, 60.0)
    return Surroundings(Hub(clock, 0.025, 3.0), read(SHIPPED), limits, Metrics(), tickets, clock, clock)


def begin(around: Surroundings) -> tuple[Socket, Session, asyncio.Task[int]]:
    socket = Socket()
    quota = Quota(sockets=1, subscriptions=100, frames_per_s=100, burst_s=5)
    share = Quotas(quota, quota, around.clock).share(ALICE)
    session = Session(around, ALICE, share, OrderFrames(), socket.send)
    return socket, session, asyncio.create_task(session.run(socket.received.get))


def only(watch: Watch) -> Subscription:
    """The only subscription of a key."""
    (subscription,) = watch.subscriptions
    assert isinstance(subscription, Subscription)
    return subscription


async def due(around: Surroundings, keys: int = 1) -> list[Watch]:
    """The keys that are asked for, when there are so many."""
    watches: list[Watch] = []

    def enough() -> bool:
        watches.extend(watch for watch in around.hub.take_due() if isinstance(watch, Watch))
        return len(watches) >= keys

    await until(enough)
    return watches


async def begin_and_stop_reading(around: Surroundings) -> tuple[Socket, Session, asyncio.Task[int], Watch]:
    """A session that watches a key, whose client has been sent its first version and reads nothing from then on."""
    socket, session, task = begin(around)
    socket.asks()
    (watch,) = await due(around)
    around.hub.answered(watch, version(1))
    await until(lambda: len(socket.sent) == 1)
    socket.open.clear()
    return socket, session, task, watch


async def test_a_closed_socket_leaves_nothing_behind(around: Surroundings) -> None:
    socket, _, task = begin(around)
    socket.asks()
    await due(around)
    socket.leaves()

    assert await task == 1001
    assert (around.hub.subscriptions, around.hub.unique_keys) == (0, 0)


@pytest.mark.parametrize(("asked", "granted"), [(None, 1.0), (0, 0.0), (1, 0.1), (250, 0.25), (90_000, 5.0)])
async def test_an_interval_is_kept_within_its_limits(around: Surroundings, asked: int | None, granted: float) -> None:
    socket, _, task = begin(around)
    socket.asks(**({} if asked is None else {"interval_ms": asked}))
    (watch,) = await due(around)

    assert watch.interval == granted
    socket.leaves()
    await task


async def test_a_client_that_reads_slowly_gets_the_newest_and_what_it_skipped(around: Surroundings) -> None:
    socket, session, task, watch = await begin_and_stop_reading(around)
    for offset in range(2, 7):
        session.changed(only(watch), version(offset), False)
        await asyncio.sleep(0)
    stalled = session.writing_since is not None
    socket.open.set()
    await until(lambda: len(socket.sent) == 3)

    assert stalled
    assert [frame["data"]["tracking_number"] for frame in socket.sent] == ["1", "2", "6"]
    assert [frame.get("skipped") for frame in socket.sent] == [None, None, "3"]
    assert around.metrics.frames.skipped == 3
    assert session.writing_since is None
    socket.leaves()
    await task


async def test_a_client_for_whom_too_many_bytes_wait_is_sent_away(around: Surroundings) -> None:
    socket, session, task, watch = await begin_and_stop_reading(around)
    for offset in (2, 3):
        session.changed(only(watch), replace(version(offset), size=600), False)
        await asyncio.sleep(0)
    within = session.end_code
    session.changed(only(watch), replace(version(4), size=1001), False)

    assert (within, session.end_code, around.hub.subscriptions) == (None, 4408, 0)
    socket.open.set()
    socket.leaves()
    await task


async def test_what_waits_of_a_row_that_was_withdrawn_is_never_sent(around: Surroundings) -> None:
    socket, session, task, watch = await begin_and_stop_reading(around)
    subscription = only(watch)
    session.changed(subscription, version(2), False)
    await until(lambda: session.writing_since is not None)
    session.changed(subscription, version(3), False)
    around.hub.answered(watch, version(4, owner="customer-0002"))
    socket.open.set()
    await until(lambda: len(socket.sent) == 3)

    assert socket.sent[1]["data"]["tracking_number"] == "2"
    assert socket.sent[2]["error"]["code"] == "forbidden"
    socket.leaves()
    await task


async def test_more_keys_than_allowed_are_refused_and_asking_again_changes_the_interval(around: Surroundings) -> None:
    socket, _, task = begin(around)
    for order_id in ("a", "b", "c"):
        socket.asks(order_id=order_id)
    socket.asks(order_id="a", interval_ms=200)
    await until(lambda: len(socket.sent) == 1)
    watches = {watch.key.group: watch for watch in await due(around, 2)}
    await until(lambda: watches["a"].interval == 0.2)

    assert socket.sent[0]["error"]["code"] == "too_many_subscriptions"
    assert socket.sent[0]["error"]["order_id"] == "c"
    assert around.hub.subscriptions == 2
    socket.leaves()
    await task


async def test_requests_are_not_read_on_while_their_replies_wait(around: Surroundings) -> None:
    socket, _, task = begin(around)
    socket.open.clear()
    for _ in range(20):
        socket.asks(type="nonsense")
    await until(lambda: socket.received.qsize() < 20)
    for _ in range(10):
        await asyncio.sleep(0)
    unread = socket.received.qsize()
    socket.open.set()
    await until(lambda: len(socket.sent) == 20)

    assert unread == 15  # one reply is being sent and four wait
    socket.leaves()
    await task


async def test_a_late_first_answer_is_said(around: Surroundings) -> None:
    socket, session, task = begin(around)
    socket.asks()
    (watch,) = await due(around)
    session.delayed(only(watch))
    await until(lambda: len(socket.sent) == 1)

    assert (socket.sent[0]["error"]["code"], socket.sent[0]["error"]["order_id"]) == ("unavailable", "12345")
    socket.leaves()
    await task


async def test_a_session_closes_its_socket_unless_the_client_does_not_read(around: Surroundings) -> None:
    socket, session, task = begin(around)
    socket.open.clear()
    socket.asks(order_id="")
    await until(lambda: session.writing_since is not None)
    await session.close(1012, "restart")
    socket.open.set()
    await until(lambda: session.writing_since is None)
    await session.close(1012, "restart")

    assert socket.sent[0]["type"] == "error"
    assert socket.sent[1:] == [{"type": "websocket.close", "code": 1012, "reason": "restart"}]
    socket.leaves()
    await task


async def test_an_ended_session_sends_nothing_that_waited_and_answers_no_more(around: Surroundings) -> None:
    socket, session, task = begin(around)
    socket.asks()
    (watch,) = await due(around)
    socket.open.clear()
    around.hub.answered(watch, version(1))
    session.end(4401, "over")
    session.end(4000, "again")
    socket.asks()
    socket.open.set()
    await until(lambda: bool(socket.sent))
    socket.leaves()
    await task

    assert socket.sent == [{"type": "websocket.close", "code": 4401, "reason": "over"}]
    assert (session.end_code, around.hub.subscriptions) == (4401, 0)
