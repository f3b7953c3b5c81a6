"""A channel with more records than one read allows ends, and nothing else ends with it."""

import signal
from types import FrameType

from testkit.ws_edge.answers import SCORES, at, keyed
from testkit.ws_edge.one_socket import OneSocket, settle
from testkit.ws_edge.stream import StreamClient
from ws_edge.errors import RowTooLargeError
from ws_edge.model.states import KeyState, StoreKey
from ws_edge.upstream.queries import RangeResult

CHANNEL = "q1sFh0pXvT2mCw9aZk4LdA"


def hangs(_signal: int, _frame: FrameType | None) -> None:
    raise AssertionError("the loop hangs")


async def test_a_channel_that_is_too_large_ends_and_the_socket_goes_on() -> None:
    async with OneSocket(SCORES) as socket:
        client = StreamClient(socket)  # type: ignore[arg-type]  # as far as it is used
        await client.say(watch=[{"id": 1, "channel": CHANNEL}, {"id": 2, "store": "scores", "group": "g"}])
        former = signal.signal(signal.SIGALRM, hangs)
        signal.setitimer(signal.ITIMER_REAL, 5)
        try:
            for watch in socket.hub.take_due():
                if watch.question.store is SCORES:
                    socket.hub.answered(watch, _row())
                else:
                    socket.hub.failed(watch, RowTooLargeError("too many rows"))
            await settle()
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, former)
        assert socket.unread
        await client.until_current(2)

    assert client.ended[1]["code"] == "too_many_watches"


def _row() -> RangeResult:
    return keyed(KeyState(StoreKey("scores", "g"), at(1)))
