"""A socket keeps nothing of a frame that it has handled: a frame of 64 KiB takes ten times as much once it is read."""

import gc
from typing import Any

import pytest

from testkit.ws_edge.answers import BOARDS, whole
from testkit.ws_edge.one_socket import OneSocket
from testkit.ws_edge.stream import StreamClient
from ws_edge.codec.requests import ChannelRequest, ClientRequest, WatchRequest

STEPS = [{"store": "boards", "group_field": "next"}]
BOARD = {"store": "boards", "group": "g"}


def kept() -> list[Any]:
    """Returns the requests of clients that are alive, and those of watches with tokens of places below."""
    gc.collect()
    requests = [each for each in gc.get_objects() if isinstance(each, ClientRequest | WatchRequest | ChannelRequest)]
    return [each for each in requests if isinstance(each, ClientRequest) or each.below]


@pytest.mark.parametrize("watch", [BOARD, BOARD | {"steps": STEPS}, {"channel": "q1sFh0pXvT2mCw9aZk4LdA"}])
async def test_an_idle_socket_keeps_no_request(watch: dict[str, Any]) -> None:
    below = [{"path": [f"row {number}"], "token": "a token"} for number in range(100)]
    async with OneSocket(BOARDS) as socket:
        client = StreamClient(socket)  # type: ignore[arg-type]  # as far as it is used
        await client.say(watch=[{"id": 1, **watch, "below": below}])
        await socket.answered(whole(through=1))

        assert kept() == []
