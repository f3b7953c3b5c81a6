"""A socket that is being written to is closed as soon as its client has read."""

import json

import pytest

from testkit.ws_edge.answers import ALICE, whole
from testkit.ws_edge.fake_query_service import SHIPPED_STORES
from testkit.ws_edge.one_socket import OneSocket, message_of, settle
from testkit.ws_edge.stream import StreamClient
from ws_edge.errors import CLOSE_FAILED, CLOSE_RESTART
from ws_edge.session.place import Place


async def test_a_close_follows_the_frame_that_is_being_sent() -> None:
    async with OneSocket() as socket:
        client = StreamClient(socket)  # type: ignore[arg-type]  # as far as it is used
        assert "hello" in await client.next()
        socket.reads.clear()
        await client.say(ping={})
        socket.session.writer.close(CLOSE_RESTART, "this edge restarts")
        await settle()
        before = socket.unread
        socket.reads.set()
        await settle()
        assert (before, socket.unread) == (0, 2)
        ping, close = [await socket.next_event() for _ in "12"]

    assert json.loads(message_of(ping)) == {"ping": {}}
    assert (close["type"], close["code"]) == ("websocket.close", CLOSE_RESTART)


async def test_a_defect_while_a_frame_is_made_closes_the_socket(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("a defect")

    monkeypatch.setattr(Place, "next_frames", fail)
    async with OneSocket(SHIPPED_STORES["orders-by-customer"]) as socket:
        client = StreamClient(socket)  # type: ignore[arg-type]  # as far as it is used
        assert "hello" in await client.next()
        await client.say(watch=[{"id": 1, "store": "orders-by-customer", "group": ALICE.id}])
        await socket.answered(whole(through=1))
        close = await socket.next_event()

    assert (close["type"], close["code"]) == ("websocket.close", CLOSE_FAILED)
