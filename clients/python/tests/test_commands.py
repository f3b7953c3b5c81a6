"""`statecast watch --push` before a gateway that is scripted frame by frame."""

import asyncio
import json
import sys
from asyncio.subprocess import PIPE
from signal import SIGINT

import pytest
from websockets.asyncio.server import ServerConnection, serve
from websockets.http11 import Request, Response

from statecast.orders.v1.order_pb2 import Order
from statecast.push.v1.range_pb2 import MemberChange, Range, RangeChanged, RangeWatched
from statecast.push.v1.subscription_pb2 import Start
from statecast.state.v1.state_pb2 import Position, StateKey
from statecast_client.__main__ import main
from testkit.push_server import GROUP, STORE, Peer, server

RANGE = Range(store="orders-by-customer", group="customer-1", limit=2, reverse=True)
ENTERED, LEFT = MemberChange.MEMBER_CHANGE_ENTERED, MemberChange.MEMBER_CHANGE_LEFT


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
    frame = await peer.next_frame()
    assert frame.watch_range.range == RANGE
    await peer.say(id=frame.id, range_watched=RangeWatched(range=RANGE, start=Start.START_SNAPSHOT, members=1))
    for offset, member, change in ((1, "a", ENTERED), (2, "b", LEFT)):
        key = StateKey(group=RANGE.group, sort="1", member=member)
        changed = RangeChanged(range=RANGE, change=change, key=key, position=Position(epoch=7, offset=offset))
        if change == ENTERED:
            changed.row.Pack(Order(order_id=member))
        await peer.say(range_changed=changed)
    await peer.socket.wait_closed()


async def test_a_key_is_written_as_watch_writes_it(capsys: pytest.CaptureFixture[str]) -> None:
    async with server(tell_of_an_order) as gateway:
        assert await run(gateway, STORE, GROUP, "--limit", "1") == 0

    assert capsys.readouterr().out == f'{GROUP}  @7/3  {{"order_id":"{GROUP}"}}\n'


async def test_a_range_is_written_with_the_kind_of_each_change(capsys: pytest.CaptureFixture[str]) -> None:
    options = (RANGE.store, "--group", RANGE.group, "--reverse", "--members", "2", "--limit", "2")
    async with server(tell_of_a_range) as gateway:
        assert await run(gateway, *options) == 0
        people = capsys.readouterr().out
        assert await run(gateway, *options, "--json") == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]

    assert people.splitlines() == ['entered  customer-1/1/a  @7/1  {"order_id":"a"}', "left  customer-1/1/b  @7/2"]
    assert [(line["change"], line["key"]["member"], line["value"]) for line in lines] == [
        ("entered", "a", {"order_id": "a"}),
        ("left", "b", None),
    ]


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
