"""`statecast watch --push` before a gateway that is scripted frame by frame."""

import asyncio
import json
import sys
from asyncio.subprocess import PIPE
from base64 import urlsafe_b64encode
from signal import SIGINT

import pytest
from websockets.asyncio.server import ServerConnection, serve
from websockets.http11 import Request, Response

from statecast_client.__main__ import main
from testkit.push_server import GROUP, STORE, Peer, server

RANGE = {"store": "orders-by-customer", "group": "customer-1", "limit": 2, "reverse": True}


async def run(gateway: str, *arguments: str) -> int:
    """Runs the command in a thread of its own; returns its exit status."""
    argv = ("watch", "--push", "--gateway", gateway, "--timeout", "20", *arguments)
    return await asyncio.to_thread(main, argv, {"STATECAST_API_KEY": "a-key"})


async def tell_of_an_order(peer: Peer) -> None:
    assert peer.socket.request is not None
    assert (peer.socket.request.path, peer.socket.request.headers["apikey"]) == ("/v1/stream", "a-key")
    await peer.admitted()
    await peer.change(3)
    await peer.socket.wait_closed()


async def tell_of_a_range(peer: Peer) -> None:
    watch = await peer.admitted()
    assert watch.items() >= RANGE.items()
    rows = [{"key": key, "sort": "1", "row": {"order_id": key}, "commit_time": "T"} for key in ("a", "b")]
    await peer.say(id=1, rows=rows, token="A")
    await peer.say(id=1, rows=[{"key": "b", "left": True}], token="B")
    await peer.socket.wait_closed()


async def test_a_key_is_written_as_watch_writes_it(capsys: pytest.CaptureFixture[str]) -> None:
    async with server(tell_of_an_order) as gateway:
        assert await run(gateway, STORE, GROUP, "--limit", "1") == 0

    assert capsys.readouterr().out == f'{GROUP}  {{"order_id":"{GROUP}","offset":3}}\n'


async def test_a_range_is_written_row_by_row(capsys: pytest.CaptureFixture[str]) -> None:
    options = ("orders-by-customer", "customer-1", "--reverse", "--rows", "2", "--limit", "2")
    async with server(tell_of_a_range) as gateway:
        assert await run(gateway, *options) == 0
        people = capsys.readouterr().out
        assert await run(gateway, *options, "--json") == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]

    assert people.splitlines()[0] == 'customer-1/1/a  {"order_id":"a"}'
    assert lines[0].items() >= {"group": "customer-1", "key": "a", "sort": "1", "value": {"order_id": "a"}}.items()
    assert lines[0]["commit_time"] == "T"


async def test_a_row_that_leaves_is_written(capsys: pytest.CaptureFixture[str]) -> None:
    async def leave(peer: Peer) -> None:
        await peer.admitted()
        await peer.change(1)
        await peer.say(id=1, rows=[{"left": True}], token="B")
        await peer.socket.wait_closed()

    async with server(leave) as gateway:
        assert await run(gateway, STORE, GROUP, "--limit", "1") == 0

    assert capsys.readouterr().out in (f'{GROUP}  {{"order_id":"{GROUP}","offset":1}}\n', f"{GROUP}  has left\n")


def test_a_token_shows_its_offset(capsys: pytest.CaptureFixture[str]) -> None:
    token = urlsafe_b64encode(bytes(8) + b"\xad\x02\x0a").decode().rstrip("=")

    assert main(("token", token), {}) == 0
    assert main(("token", token, "--json"), {}) == 0
    assert main(("token", "nonsense"), {}) == 2
    output = capsys.readouterr()
    assert output.out == 'offset 300, and 10 ahead\n{"offset":300,"ahead":10}\n'
    assert "`nonsense` is no token" in output.err


async def test_an_interrupt_ends_the_command_silently() -> None:
    async with server(tell_of_an_order) as gateway:
        command = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "statecast_client", "watch", STORE, GROUP, "--push"),
            *("--gateway", gateway, "--api-key", "a-key"),
            stdout=PIPE,
            stderr=PIPE,
        )
        assert command.stdout is not None
        await command.stdout.readline()
        command.send_signal(SIGINT)
        _, errors = await command.communicate()

    assert (command.returncode, errors) == (130, b"")


async def test_an_expired_credential_is_reported_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    async def expire(peer: Peer) -> None:
        await peer.next_frame()
        await peer.socket.close(4401, "sign in again")

    async with server(expire) as gateway:
        assert await run(gateway, STORE, GROUP) == 2
    assert capsys.readouterr().err == "statecast: the credential has expired (4401: sign in again)\n"


async def test_a_refused_credential_is_reported_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    def refuse(connection: ServerConnection, _: Request) -> Response:
        return connection.respond(401, "")

    async with serve(lambda socket: socket.wait_closed(), "127.0.0.1", 0, process_request=refuse) as running:
        assert await run(f"ws://127.0.0.1:{next(iter(running.sockets)).getsockname()[1]}", STORE, GROUP) == 2
    assert capsys.readouterr().err == "statecast: the credential is not accepted (401)\n"


@pytest.mark.parametrize(
    ("gateway", "more", "status", "message"),
    [
        ("ws://127.0.0.1:1", ("--timeout", "0.5"), 3, "ws://127.0.0.1:1/v1/stream cannot be reached"),
        ("127.0.0.1:1", (), 2, "give ws://"),
        ("ws://127.0.0.1:1", ("--token", "t"), 2, "one of --api-key, --token and --user"),
        ("wss://127.0.0.1:1", ("--tls-ca", "/nowhere"), 2, "the certificates cannot be read"),
    ],
)
async def test_an_error_is_reported_in_one_line(
    gateway: str, more: tuple[str, ...], status: int, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert await run(gateway, STORE, GROUP, *more) == status
    error = capsys.readouterr().err
    assert message in error
    assert len(error.splitlines()) == 1
