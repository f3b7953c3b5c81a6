"""The events that end the live client, those that do not, and how a program sees why."""

import asyncio
import json
from collections.abc import Iterator

import pytest
from websockets.asyncio.server import ServerConnection, serve
from websockets.http11 import Request, Response

from statecast_client.errors import StatecastError
from statecast_client.push import Need, PushClient, PushError, PushRefusedError, connection
from statecast_client.push.protocol import MAX_PAUSE_S, Backoff, Then, of_close, of_refusal
from testkit.push_server import GROUP, STORE, Peer, server
from testkit.waiting import scaled


@pytest.mark.parametrize(
    ("code", "then"),
    [
        (1001, Then.CONNECT),
        (1006, Then.CONNECT),
        (1009, Then.END),
        (1011, Then.CONNECT),
        (1012, Then.CONNECT),
        (4401, Then.RENEW),
        (4403, Then.END),
        (4999, Then.CONNECT),
    ],
)
def test_each_close_code_has_its_consequence(code: int, then: Then) -> None:
    ending = of_close(code, "so it is")

    assert (ending.then, ending.pause_s) == (then, 0)
    assert isinstance(ending.error, PushRefusedError)
    assert ending.error.code == str(code)
    assert f"({code}: so it is)" in str(ending.error)


@pytest.mark.parametrize(
    ("status", "retry_after", "then", "pause_s"),
    [
        (400, None, Then.END, 0),
        (401, None, Then.RENEW, 0),
        (403, None, Then.END, 0),
        (404, None, Then.END, 0),
        (408, None, Then.CONNECT, 0),
        (429, "7", Then.CONNECT, 7),
        (502, None, Then.CONNECT, 0),
        (503, "3", Then.CONNECT, 3),
        (503, "Wed, 21 Oct 2026 07:28:00 GMT", Then.CONNECT, 0),
    ],
)
def test_each_refusal_has_its_consequence(status: int, retry_after: str | None, then: Then, pause_s: float) -> None:
    ending = of_refusal(status, retry_after, b"")

    assert (ending.then, ending.pause_s) == (then, pause_s)


@pytest.mark.parametrize(
    "body",
    [
        {"error": {"code": "busy", "message": "this edge is full"}},
        {"message": "this edge is full"},
        "this edge\n is full",
    ],
)
def test_the_sentence_of_a_refusal_is_passed_on(body: object) -> None:
    text = body if isinstance(body, str) else json.dumps(body)

    assert "(503: this edge is full)" in str(of_refusal(503, None, text.encode()).error)


class Credentials:
    """A function that returns one token after the other, and the needs that it was asked for."""

    def __init__(self, *tokens: str | Exception) -> None:
        self.needs: list[Need] = []
        self._tokens: Iterator[str | Exception] = iter(tokens)

    async def __call__(self, need: Need) -> dict[str, str]:
        self.needs.append(need)
        token = next(self._tokens)
        if isinstance(token, Exception):
            raise token
        return {"Authorization": token}


async def ended_by(client: PushClient) -> StatecastError:
    """Waits for the end of the client; every method reports the same error."""
    with pytest.raises(StatecastError) as raised:
        async with asyncio.timeout(30):
            await anext(client.watch(STORE, GROUP))
    with pytest.raises(StatecastError) as again:
        client.watch(STORE, "another")
    with pytest.raises(StatecastError):
        await client.opened()

    assert raised.value is again.value
    assert client.reason is raised.value
    return raised.value


async def revoke(peer: Peer) -> None:
    await peer.next_frame()
    await peer.socket.close(4403, "it was ended")


async def expire(peer: Peer) -> None:
    await peer.next_frame()
    await peer.socket.close(4401, "expired")


async def test_a_fatal_close_code_ends_the_client_and_all_see_why() -> None:
    async with server(revoke) as address, PushClient(address) as client:
        error = await ended_by(client)

    assert isinstance(error, PushRefusedError)
    assert error.code == "4403"
    assert "it was ended" in str(error)


async def test_expired_fixed_credentials_end_the_client() -> None:
    async with server(expire, revoke) as address, PushClient(address, credentials={"apikey": "a"}) as client:
        error = await ended_by(client)

    assert "the credential has expired (4401" in str(error)


async def test_expired_credentials_are_renewed_once() -> None:
    credentials = Credentials("old", "new", "another")
    async with server(expire) as address, PushClient(address, credentials=credentials) as client:
        error = await ended_by(client)

    assert isinstance(error, PushRefusedError)
    assert error.code == "4401"
    assert credentials.needs == ["connect", "expired"]


async def test_a_function_without_more_credentials_ends_the_client() -> None:
    signed_out = PushError("signed out")
    credentials = Credentials("old", signed_out)
    async with server(expire) as address, PushClient(address, credentials=credentials) as client:
        assert await ended_by(client) is signed_out


@pytest.mark.parametrize(("status", "needs"), [(401, ["connect", "expired"]), (403, ["connect"])])
async def test_a_refused_handshake_ends_the_client(status: int, needs: list[Need]) -> None:
    def refuse(connection: ServerConnection, _: Request) -> Response:
        return connection.respond(status, '{"message": "no"}')

    credentials = Credentials("old", "new", "another")
    async with (
        serve(lambda socket: socket.wait_closed(), "127.0.0.1", 0, process_request=refuse) as running,
        PushClient(f"ws://127.0.0.1:{next(iter(running.sockets)).getsockname()[1]}", credentials=credentials) as client,
    ):
        error = await ended_by(client)

    assert isinstance(error, PushRefusedError)
    assert error.code == str(status)
    assert credentials.needs == needs


@pytest.mark.parametrize("address", ["ws://127.0.0.1:1/v1/stream", "wss://127.0.0.1:1/v1/stream"])
async def test_the_client_has_a_reason_while_it_cannot_connect(address: str) -> None:
    async def reason_of(client: PushClient) -> str:
        async with asyncio.timeout(30):
            while client.reason is None:  # noqa: ASYNC110  a property cannot be awaited
                await asyncio.sleep(0.01)
        return str(client.reason)

    async with PushClient(address) as client:
        assert f"{address} cannot be reached" in await reason_of(client)


async def test_a_server_with_another_protocol_ends_the_client() -> None:
    async with (
        serve(lambda socket: socket.wait_closed(), "127.0.0.1", 0) as running,
        PushClient(f"ws://127.0.0.1:{next(iter(running.sockets)).getsockname()[1]}") as client,
    ):
        assert "does not speak statecast.push.v2+json" in str(await ended_by(client))


async def test_credentials_follow_no_redirect() -> None:
    paths: list[str] = []

    def redirect(connection: ServerConnection, request: Request) -> Response:
        paths.append(request.path)
        answer = connection.respond(307, "")
        answer.headers["Location"] = "/elsewhere"
        return answer

    async with (
        serve(lambda socket: socket.wait_closed(), "127.0.0.1", 0, process_request=redirect) as running,
        PushClient(f"ws://127.0.0.1:{next(iter(running.sockets)).getsockname()[1]}/v1/stream") as client,
        asyncio.timeout(scaled(30)),
    ):
        while client.reason is None:  # noqa: ASYNC110  a property cannot be awaited
            await asyncio.sleep(0.01)

        assert set(paths) == {"/v1/stream"}
        assert "(307)" in str(client.reason)


async def test_a_dead_line_is_given_up_however_often_it_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "CHECK_S", 0.3)

    async def script(peer: Peer) -> None:
        await peer.socket.wait_closed()

    async with server(script) as address, PushClient(address) as client, asyncio.timeout(scaled(10)):
        await client.opened()
        while client.reason is None:
            await client.check()
            await asyncio.sleep(0.01)

        assert "is silent" in str(client.reason)


async def test_a_line_may_be_checked_while_it_is_closed() -> None:
    async def script(peer: Peer) -> None:
        peer.socket.transport.pause_reading()  # it does not answer the closing handshake
        await peer.socket.send("no JSON")
        await checked.wait()
        peer.socket.transport.abort()

    checked = asyncio.Event()
    async with server(script) as address, PushClient(address) as client, asyncio.timeout(scaled(10)):
        await client.opened()
        try:
            for _ in range(20):
                await asyncio.sleep(0.01)
                await client.check()
        finally:
            checked.set()
        with pytest.raises(PushError, match="not of statecast"):
            await anext(client.watch(STORE, GROUP))


async def test_a_program_ends_although_the_edge_does_not_answer() -> None:
    async def script(peer: Peer) -> None:
        peer.socket.transport.pause_reading()
        await peer.say(ping={})
        await is_closed.wait()
        peer.socket.transport.abort()

    is_closed = asyncio.Event()
    async with server(script) as address:
        try:
            async with asyncio.timeout(9), PushClient(address) as client:
                await client.opened()
        finally:
            is_closed.set()


async def test_a_frame_may_be_larger_than_a_mebibyte() -> None:
    async def script(peer: Peer) -> None:
        await peer.admitted()
        await peer.say(id=1, rows=[{"row": {"text": "a" * 2**21}}], token="1")
        await peer.socket.wait_closed()

    async with server(script) as address, PushClient(address) as client, asyncio.timeout(scaled(10)):
        assert len((await anext(client.watch(STORE, GROUP))).rows[""].value["text"]) == 2**21


async def test_access_that_ends_within_a_second_is_a_frame_like_others() -> None:
    async def script(peer: Peer) -> None:
        await peer.admitted()
        await peer.say(access={})  # proto3 JSON leaves out a zero
        await peer.change(1)
        await peer.socket.wait_closed()

    async with server(script) as address, PushClient(address) as client, asyncio.timeout(scaled(10)):
        assert (await anext(client.watch(STORE, GROUP))).token == "1"


def test_pauses_double_up_to_the_longest_and_reset_when_it_works() -> None:
    backoff = Backoff(lambda: 1.0)
    pauses = [backoff.next() for _ in range(2000)]
    backoff.reset()

    assert pauses[:3] == [0.25, 0.5, 1.0]
    assert pauses[-1] == MAX_PAUSE_S
    assert backoff.next() == 0.25
    assert Backoff(lambda: 0.0).next() == 0.125
