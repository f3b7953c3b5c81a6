"""A session answers requests until it is closed from either side."""

import asyncio

from ws_edge.sockets.surroundings import Surroundings
from ws_edge.testing.edge import until
from ws_edge.testing.session import begin, due, version


async def test_a_closed_socket_leaves_nothing_behind(around: Surroundings) -> None:
    socket, _, task = begin(around)
    socket.asks()
    await due(around)
    socket.leaves()

    assert await task == 1001
    assert (around.hub.subscriptions, around.hub.unique_keys) == (0, 0)


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
