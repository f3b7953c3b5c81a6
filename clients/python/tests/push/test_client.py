"""The live client against a server that is scripted frame by frame."""

import asyncio
import secrets

import pytest

from statecast.push.v1.push_pb2 import Error
from statecast.push.v1.range_pb2 import Range
from statecast.push.v1.subscription_pb2 import Changed, Start, Subscribe, Subscribed
from statecast.state.v1.state_pb2 import Position
from statecast_client.push import PushClient, PushError, PushRefusedError, Subscription
from testkit.push_server import GROUP, STORE, Peer, server


async def next_offset(subscription: Subscription) -> int:
    async with asyncio.timeout(30):
        return (await anext(subscription)).position.offset


async def test_after_a_lost_connection_it_resumes_after_the_last_position() -> None:
    resumed: list[Position] = []

    async def first(peer: Peer) -> None:
        frame = await peer.admitted()
        assert not frame.subscribe.HasField("after")
        await peer.change(3)
        await peer.next_frame()
        peer.socket.transport.abort()

    async def second(peer: Peer) -> None:
        for _ in range(2):
            frame = await peer.next_frame()
            if frame.subscribe.key.group == GROUP:
                resumed.append(frame.subscribe.after)
                await peer.say(id=frame.id, subscribed=Subscribed(start=Start.START_RECOVERED))
                await peer.change(4)
        await peer.socket.wait_closed()

    async with server(first, second) as address, PushClient(address) as client:
        subscription = await client.subscribe(STORE, GROUP)
        before = await next_offset(subscription)
        await client.subscribe(STORE, "another")
        after = await next_offset(subscription)

    assert (before, after) == (3, 4)
    assert resumed == [Position(epoch=7, offset=3)]
    assert subscription.recovered is True


async def test_it_reads_while_it_sends_more_requests_than_the_socket_buffers() -> None:
    groups = [secrets.token_hex(4_000) for _ in range(3_000)]  # random, for sockets compress
    requested: list[str] = []
    all_requested = asyncio.Event()

    async def script(peer: Peer) -> None:
        # No request is read before the answers to those before it, which are as large, have been taken.
        while len(requested) < len(groups):
            frame = await peer.next_frame()
            requested.append(frame.subscribe.key.group)
            if len(requested) == 1:
                for group in groups:
                    await peer.say(error=Error(code="noise", message=group))
        all_requested.set()
        await peer.socket.wait_closed()

    async with server(script) as address, PushClient(address) as client, asyncio.timeout(60):
        for group in groups:
            await client.subscribe(STORE, group)
        await all_requested.wait()

    assert requested == groups


async def test_a_slow_reader_gets_the_newest_and_the_number_that_it_replaces() -> None:
    async def script(peer: Peer) -> None:
        await peer.admitted()
        for offset in (1, 2):
            await peer.change(offset, skipped=2)
        await peer.say(id="0", error=Error(code="unheard_of"))
        await peer.next_frame()
        await peer.change(3)
        await peer.next_frame()
        await peer.socket.wait_closed()

    async with server(script) as address, PushClient(address) as client:
        subscription = await client.subscribe(STORE, GROUP)
        async with asyncio.timeout(30):
            while subscription.position is None or subscription.position.offset < 2:  # noqa: ASYNC110  nothing is read
                await asyncio.sleep(0.01)
            update = await anext(subscription)

    assert (update.position.offset, update.skipped) == (2, 2 + 1 + 2)


async def test_a_refused_subscription_raises_to_its_reader_and_the_others_go_on() -> None:
    async def script(peer: Peer) -> None:
        refused = await peer.next_frame()
        await peer.say(id=refused.id, error=Error(code="unavailable", message="later"))
        await peer.say(id=refused.id, error=Error(code="forbidden", message="it belongs to somebody else"))
        await peer.admitted()
        await peer.change(1)
        await peer.socket.wait_closed()

    async with server(script) as address, PushClient(address) as client:
        foreign = await client.subscribe(STORE, "foreign")
        own = await client.subscribe(STORE, GROUP)
        with pytest.raises(PushRefusedError, match="somebody else") as refusal:
            await next_offset(foreign)

        assert refusal.value.code == "forbidden"
        assert await next_offset(own) == 1


async def test_updates_of_an_earlier_subscription_do_not_reach_the_next() -> None:
    async def script(peer: Peer) -> None:
        await peer.admitted()
        await peer.change(1)
        await peer.next_frame()
        frame = await peer.next_frame()
        await peer.change(2)
        await peer.say(id=frame.id, subscribed=Subscribed(start=Start.START_SNAPSHOT))
        await peer.change(3)
        await peer.socket.wait_closed()

    async with server(script) as address, PushClient(address) as client:
        first = await client.subscribe(STORE, GROUP)
        assert await next_offset(first) == 1
        await first.unsubscribe()
        second = await client.subscribe(STORE, GROUP)
        await first.unsubscribe()

        assert await next_offset(second) == 3


async def test_what_a_call_has_answered_is_a_position_to_begin_after() -> None:
    begun: list[Position] = []
    all_begun = asyncio.Event()

    async def script(peer: Peer) -> None:
        begun.append((await peer.next_frame()).subscribe.after)
        begun.append((await peer.next_frame()).watch_range.after)
        all_begun.set()
        await peer.socket.wait_closed()

    async with server(script) as address, PushClient(address) as client:
        await client.opened()
        await client.subscribe(STORE, GROUP, after={"epoch": "7", "offset": "3"})
        await client.watch_range(
            Range(store=STORE, group=GROUP), after={"epoch": "4611686018427387904", "offset": "-1"}
        )
        async with asyncio.timeout(30):
            await all_begun.wait()

    assert begun == [Position(epoch=7, offset=3), Position(epoch=4611686018427387904, offset=-1)]


async def test_a_key_is_told_again_where_that_is_asked_for() -> None:
    asked: list[bool] = []

    async def script(peer: Peer) -> None:
        asked.append((await peer.admitted()).subscribe.repeat)
        await peer.change(3)
        asked.append((await peer.next_frame()).subscribe.repeat)
        await peer.change(3)
        await peer.socket.wait_closed()

    async with server(script) as address, PushClient(address) as client:
        subscription = await client.subscribe(STORE, GROUP, repeat=True)
        offsets = [await next_offset(subscription)]
        await client.subscribe(STORE, "another")
        offsets.append(await next_offset(subscription))

    assert asked == [True, False]
    assert offsets == [3, 3]


async def test_what_is_unread_and_comes_again_skips_nothing() -> None:
    subscription = Subscription(Subscribe(store=STORE), None, lambda _: asyncio.sleep(0))
    for offset in (3, 3, 3, 4, 4):
        subscription.put(Changed(position=Position(epoch=7, offset=offset)))
    subscription.finish(None)

    assert [(each.position.offset, each.skipped) async for each in subscription] == [(4, 1)]


@pytest.mark.parametrize(
    "after", [{}, {"epoch": "7"}, {"epoch": "7", "offset": "x"}, {"epoch": "7", "offset": "3", "through": "4"}]
)
async def test_what_is_no_position_is_refused(after: dict[str, str]) -> None:
    async with PushClient("ws://127.0.0.1:1") as client:
        with pytest.raises(PushError, match="is not a position"):
            await client.subscribe(STORE, GROUP, after=after)
        with pytest.raises(PushError, match="is not a position"):
            await client.watch_range(Range(store=STORE, group=GROUP), after=after)


async def test_it_must_be_entered_and_watches_a_key_once() -> None:
    async def script(peer: Peer) -> None:
        await peer.socket.wait_closed()

    client = PushClient("ws://127.0.0.1:1")
    with pytest.raises(PushError, match="not open"):
        await client.subscribe(STORE, GROUP)
    with pytest.raises(PushError, match="not open"):
        await client.opened()
    with pytest.raises(PushError, match="`gateway:8080` is not the address"):
        PushClient("gateway:8080")
    async with server(script) as address, PushClient(address) as client:
        subscription = await client.subscribe(STORE, GROUP)
        with pytest.raises(PushError, match="already"):
            await client.subscribe(STORE, GROUP)
    with pytest.raises(StopAsyncIteration):
        await anext(subscription)
    with pytest.raises(PushError, match="closed"):
        await client.subscribe(STORE, GROUP)
