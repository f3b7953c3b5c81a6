"""A session answers requests until it is closed from either side."""

import asyncio
import gc
from collections import Counter
from collections.abc import Iterator

import pytest
from httpx import AsyncClient

from testkit.ws_edge.channels import begin as begin_channel
from testkit.ws_edge.channels import channel_of, next_frame, order, orders_of
from testkit.ws_edge.edge import RunningEdge, until
from testkit.ws_edge.session import begin, begin_and_stop_reading, due, version
from ws_edge.auth.expiry import ExpiryTimer
from ws_edge.auth.quotas import QuotaReservation
from ws_edge.codec.frames import CancelRequest
from ws_edge.session.channel_feed import ChannelFeed
from ws_edge.session.session import Session, SessionContext
from ws_edge.session.writer import Outbox, SocketWriter


async def test_a_closed_socket_leaves_nothing_behind(context: SessionContext) -> None:
    socket, _, task = begin(context)
    socket.asks()
    await due(context)
    socket.leaves()

    assert await task == 1001
    assert (context.hub.subscriptions, context.hub.unique_keys) == (0, 0)


async def test_no_more_requests_are_read_while_replies_wait(context: SessionContext) -> None:
    socket, _, task = begin(context)
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


async def test_a_session_closes_its_socket_unless_the_client_does_not_read(context: SessionContext) -> None:
    socket, session, task = begin(context)
    socket.open.clear()
    socket.asks(order_id="")
    await until(lambda: session.writer.writing_since is not None)
    session.writer.close(1012, "restart")
    socket.open.set()
    await until(lambda: session.writer.writing_since is None)
    session.writer.close(1012, "restart")

    assert socket.sent[0]["type"] == "error"
    assert socket.sent[1:] == [{"type": "websocket.close", "code": 1012, "reason": "restart"}]
    socket.leaves()
    await task


async def test_an_ended_session_sends_nothing_that_waited_and_answers_no_more(context: SessionContext) -> None:
    socket, session, task = begin(context)
    socket.asks()
    (watch,) = await due(context)
    socket.open.clear()
    context.hub.answered(watch, version(1))
    session.end(4401, "over")
    session.end(4000, "again")
    socket.asks()
    socket.open.set()
    await until(lambda: bool(socket.sent))
    socket.leaves()
    await task

    assert socket.sent == [{"type": "websocket.close", "code": 4401, "reason": "over"}]
    assert (session.writer.end_code, context.hub.subscriptions) == (4401, 0)


async def test_answers_that_nobody_reads_end_the_session(context: SessionContext) -> None:
    """A channel makes its socket answer, also while the client reads nothing and is read from no more."""
    socket, session, task, watch = await begin_and_stop_reading(context)
    for _ in range(20):
        session.act(CancelRequest(watch.key, "12345"))
    socket.leaves()
    await task

    assert session.writer.end_code == 4408
    assert session.writer.outbox.size == 0


PARTS = (Session, SocketWriter, Outbox, ExpiryTimer, QuotaReservation, ChannelFeed)


@pytest.fixture
def _no_collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Disables the garbage collector: only reference counts free objects during the test.

    The task that looks at all sockets from time to time does so all the time: it must not hold on to one.
    """
    monkeypatch.setattr("ws_edge.session.sockets.REAPING_S", 0.001)
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def parts() -> Counter[str]:
    """The number of objects of sessions in memory, by type."""
    return Counter(type(each).__name__ for each in gc.get_objects() if type(each) in PARTS)


@pytest.mark.usefixtures("_no_collector")
async def test_a_closed_session_is_freed_without_the_cycle_collector(context: SessionContext) -> None:
    before = parts()
    socket, session, task, watch = await begin_and_stop_reading(context)
    context.hub.answered(watch, version(2))
    during = parts() - before
    socket.open.set()
    socket.leaves()
    await task
    del socket, session, task, watch

    assert during == Counter({part.__name__: 1 for part in PARTS if part is not ChannelFeed})
    assert not parts() - before


@pytest.mark.usefixtures("_no_collector")
@pytest.mark.parametrize("path", ["/update/orders", "/v1/stream"])
async def test_a_session_that_this_side_ends_is_freed_without_the_cycle_collector(edge: RunningEdge, path: str) -> None:
    before = parts()
    expires_at = edge.wall_clock.now + 0.05
    async with edge.socket(path, expires_at=expires_at) as socket:
        await until(lambda: len(edge.parts.sockets) == 1)
        edge.wall_clock.now += 1
        await socket.wait_closed()
    await until(lambda: len(edge.parts.sockets) == 0)

    await until(lambda: not parts() - before)


@pytest.mark.usefixtures("_no_collector")
async def test_the_socket_of_a_channel_is_freed_without_the_cycle_collector(keeping_edge: RunningEdge) -> None:
    before = parts()
    headers = keeping_edge.headers()
    async with AsyncClient(base_url=f"http://{keeping_edge.address}", headers=headers, verify=False) as client:
        channel = await channel_of(client, order("a"), orders_of("customer-0001"))
        async with keeping_edge.socket(f"{channel}/stream") as socket:
            await begin_channel(socket)
            for _ in range(3):
                await next_frame(socket)
            during = parts() - before
    await until(lambda: keeping_edge.parts.hub.unique_keys == 0)

    assert during["ChannelFeed"] == 1
    await until(lambda: not parts() - before)
