"""A socket that is being written to is closed as soon as its client has read."""

import json

from testkit.ws_edge.one_socket import OneSocket, message_of, settle
from testkit.ws_edge.stream import StreamClient
from ws_edge.errors import CLOSE_RESTART


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
