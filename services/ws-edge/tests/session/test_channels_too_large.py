"""A channel with more records than one read allows ends alone, and one with large records takes several frames."""

import json
import signal
from types import FrameType

from google.protobuf.timestamp_pb2 import Timestamp

from statecast.push.v2.channel_pb2 import ChannelHead, ChannelRecord
from statecast.push.v2.push_pb2 import NamedWatch, Watch
from testkit.ws_edge.answers import SCORES, at, keyed, whole
from testkit.ws_edge.one_socket import OneSocket, settle
from testkit.ws_edge.stream import StreamClient
from ws_edge.channels import CHANNELS
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


async def test_no_frame_of_a_channel_is_larger_than_hello_names() -> None:
    head = ChannelHead(owner="alice", expires_at=Timestamp(seconds=2000))
    rows = [KeyState(StoreKey(CHANNELS.name, CHANNEL), at(1), ChannelRecord(channel=head))]
    names = [f"w{number:03}" for number in range(200)]
    for name in names:
        watch = NamedWatch(name=name, watch=Watch(store="scores", group="g" * 1000))
        rows.append(KeyState(StoreKey(CHANNELS.name, CHANNEL, "watch", name), at(2), ChannelRecord(watch=watch)))
    async with OneSocket(SCORES, max_sent_frame_bytes=131_072) as socket:
        await socket.send(json.dumps({"watch": [{"id": 1, "channel": CHANNEL}]}))
        await socket.answered(whole(*rows, through=2))
        contents = [await socket.recv()]
        while "token" not in json.loads(contents[-1]):
            contents.append(await socket.recv())

    assert [row["row"]["name"] for each in contents for row in json.loads(each).get("rows", ())] == names
    assert max(map(len, contents)) <= 131_072


def _row() -> RangeResult:
    return keyed(KeyState(StoreKey("scores", "g"), at(1)))
