"""The live client against a server that is scripted frame by frame."""

import asyncio
from time import time

import pytest
from websockets.asyncio.server import ServerConnection, serve

from statecast.push.v1.push_pb2 import Authenticated, Error
from statecast.push.v1.subscription_pb2 import Start, Subscribed
from statecast.state.v1.state_pb2 import Position
from statecast_client.push import PushClient, PushError, PushRefusedError, Subscription
from statecast_client.push.backoff import LONGEST_S, Backoff
from statecast_client.push.testing import GROUP, STORE, Peer, server


async def next_offset(subscription: Subscription) -> int:
    async with asyncio.timeout(30):
        return (await anext(subscription)).position.offset


async def test_after_a_lost_connection_it_goes_on_behind_the_last_position() -> None:
    resumed: list[Position] = []

    async def first(peer: Peer) -> None:
        frame = await peer.asked()
        assert not frame.subscribe.HasField("after")
        await peer.change(3)
        await peer.asked()
        peer.socket.transport.abort()

    async def second(peer: Peer) -> None:
        for _ in range(2):
            frame = await peer.asked()
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


async def test_a_slow_reader_gets_the_newest_and_is_told_what_it_replaces() -> None:
    async def script(peer: Peer) -> None:
        await peer.asked()
        for offset in (1, 2):
            await peer.change(offset, skipped=2)
        await peer.say(id="0", error=Error(code="unheard_of"))
        await peer.asked()
        await peer.change(3)
        await peer.asked()
        await peer.socket.wait_closed()

    async with server(script) as address, PushClient(address) as client:
        subscription = await client.subscribe(STORE, GROUP)
        async with asyncio.timeout(30):
            while subscription.position is None or subscription.position.offset < 2:  # noqa: ASYNC110  nothing is read
                await asyncio.sleep(0.01)
            update = await anext(subscription)

    assert (update.position.offset, update.skipped) == (2, 2 + 1 + 2)


async def test_what_the_server_refuses_is_raised_to_the_reader_and_the_rest_goes_on() -> None:
    async def script(peer: Peer) -> None:
        refused = await peer.asked()
        await peer.say(id=refused.id, error=Error(code="unavailable", message="later"))
        await peer.say(id=refused.id, error=Error(code="forbidden", message="it belongs to somebody else"))
        await peer.asked()
        await peer.change(1)
        await peer.socket.wait_closed()

    async with server(script) as address, PushClient(address) as client:
        foreign = await client.subscribe(STORE, "foreign")
        own = await client.subscribe(STORE, GROUP)
        with pytest.raises(PushRefusedError, match="somebody else") as refusal:
            await next_offset(foreign)

        assert refusal.value.code == "forbidden"
        assert await next_offset(own) == 1


@pytest.mark.parametrize(("status", "code"), [(401, "401"), (403, "403")])
async def test_refused_credentials_end_the_client(status: int, code: str) -> None:
    async def refuse(connection: ServerConnection, _: object) -> object:
        return connection.respond(status, "no")

    async with (
        serve(lambda socket: socket.wait_closed(), "127.0.0.1", 0, process_request=refuse) as running,  # type: ignore[arg-type]
        PushClient(f"ws://127.0.0.1:{next(iter(running.sockets)).getsockname()[1]}") as client,
    ):
        subscription = await client.subscribe(STORE, GROUP)
        with pytest.raises(PushRefusedError) as refusal:
            await next_offset(subscription)
        with pytest.raises(PushRefusedError):
            await client.subscribe(STORE, "another")

    assert refusal.value.code == code


async def test_a_close_code_of_the_server_ends_the_client_but_an_expiry_does_not() -> None:
    async def expire(peer: Peer) -> None:
        await peer.socket.close(4401, "expired")

    async def revoke(peer: Peer) -> None:
        await peer.asked()
        await peer.socket.close(4403, "revoked")

    async with server(expire, revoke) as address, PushClient(address) as client:
        subscription = await client.subscribe(STORE, GROUP)
        with pytest.raises(PushRefusedError, match="revoked"):
            await next_offset(subscription)


async def test_the_access_is_renewed_with_a_ticket_before_it_expires() -> None:
    shown: list[str] = []

    async def script(peer: Peer) -> None:
        for left in (0.2, 3600):
            frame = await peer.asked()
            shown.append(frame.auth_refresh.ticket)
            authenticated = Authenticated()
            authenticated.expires_at.FromNanoseconds(int((time() + left) * 1e9))
            await peer.say(id=frame.id, authenticated=authenticated)
        await peer.change(1)
        await peer.asked()
        await peer.change(2)
        await peer.socket.wait_closed()

    tickets = iter(["first", "second"])

    async def ticket() -> str:
        return next(tickets)

    async with server(script) as address, PushClient(address, ticket=ticket) as client:
        async with asyncio.timeout(30):
            while len(shown) < 2:  # noqa: ASYNC110  the server is told, not the test
                await asyncio.sleep(0.01)
        subscription = await client.subscribe(STORE, GROUP)

        assert await next_offset(subscription) == 2
    assert shown == ["first", "second"]


async def test_a_ticket_that_cannot_be_had_ends_the_client_with_the_reason() -> None:
    async def ticket() -> str:
        raise ValueError("no key at hand")

    async def script(peer: Peer) -> None:
        await peer.socket.wait_closed()

    async with server(script) as address, PushClient(address, ticket=ticket) as client:
        subscription = await client.subscribe(STORE, GROUP)
        with pytest.raises(PushError, match="no key at hand"):
            await next_offset(subscription)


async def test_it_is_used_within_its_context_and_watches_a_key_once() -> None:
    async def script(peer: Peer) -> None:
        await peer.socket.wait_closed()

    client = PushClient("ws://127.0.0.1:1")
    with pytest.raises(PushError, match="not open"):
        await client.subscribe(STORE, GROUP)
    async with server(script) as address, PushClient(address) as client:
        subscription = await client.subscribe(STORE, GROUP)
        with pytest.raises(PushError, match="already"):
            await client.subscribe(STORE, GROUP)
        with pytest.raises(ValueError, match="2 parts"):
            await client.subscribe(STORE, ("a", "b"))
    with pytest.raises(StopAsyncIteration):
        await anext(subscription)
    with pytest.raises(PushError, match="closed"):
        await client.subscribe(STORE, GROUP)


def test_pauses_double_up_to_the_longest_and_begin_anew_when_it_works() -> None:
    backoff = Backoff(lambda: 1.0)
    pauses = [backoff.next() for _ in range(8)]
    backoff.reset()

    assert pauses[:3] == [0.25, 0.5, 1.0]
    assert pauses[-1] == LONGEST_S
    assert backoff.next() == 0.25
    assert Backoff(lambda: 0.0).next() == 0.125
