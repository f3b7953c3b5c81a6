"""No proxy of the environment stands between this machine and itself; one that is used is named in errors."""

import asyncio

import grpc
import grpc.aio
import pytest

from statecast_client.client import StatecastClient
from statecast_client.errors import UnavailableError
from statecast_client.proxies import grpc_proxy_of, proxy_of, through
from statecast_client.push import PushClient
from testkit.push_server import GROUP, STORE, Peer, server

NOBODY = "http://someone:secret@127.0.0.1:9"


@pytest.fixture(autouse=True)
def captured(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sets an environment with a proxy that does not answer."""
    for name in ("no_proxy", "NO_PROXY", "all_proxy", "ALL_PROXY", "grpc_proxy"):
        monkeypatch.delenv(name, raising=False)
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
        monkeypatch.setenv(name, NOBODY)


async def reason_of(client: PushClient) -> str:
    async with asyncio.timeout(30):
        while client.reason is None:  # noqa: ASYNC110  the client has no event for it
            await asyncio.sleep(0.01)
    return str(client.reason)


async def first(peer: Peer) -> None:
    await peer.admitted()
    await peer.change(1)
    await peer.socket.wait_closed()


async def test_a_socket_of_this_machine_is_reached_directly() -> None:
    async with server(first) as address, PushClient(address) as client, asyncio.timeout(30):
        change = await anext(client.watch(STORE, GROUP))

    assert change.token == "1"


async def test_the_error_names_the_proxy_without_its_password() -> None:
    async with PushClient("ws://gateway.example/v1/stream") as client:
        reason = await reason_of(client)

    assert "through the proxy http://127.0.0.1:9" in reason
    assert "secret" not in reason


async def test_a_proxy_that_is_asked_for_is_used_even_to_this_machine() -> None:
    async with server(first) as address, PushClient(address, proxy=NOBODY) as client:
        assert "through the proxy http://127.0.0.1:9" in await reason_of(client)


async def test_lookups_of_this_machine_go_directly_and_others_name_the_proxy() -> None:
    running = grpc.aio.server()
    port = running.add_insecure_port("127.0.0.1:0")
    await running.start()
    try:
        async with StatecastClient([f"127.0.0.1:{port}"], timeout_s=30) as client:
            with pytest.raises(Exception, match=r"(?i)unimplemented|not found"):
                await client.shards()
    finally:
        await running.stop(None)
    async with StatecastClient(["query.example:50051"], timeout_s=2) as client:
        with pytest.raises(UnavailableError, match=r"query.example:50051 through the proxy http://127.0.0.1:9"):
            await client.shards()


@pytest.mark.parametrize(
    ("host", "is_direct"),
    [("localhost", True), ("127.0.0.9", True), ("[::1]", True), ("gateway.example", False), ("10.0.0.1", False)],
)
def test_only_this_machine_is_exempt(host: str, is_direct: bool) -> None:
    assert (proxy_of(f"wss://{host}/v1/stream") is None) is is_direct
    assert (grpc_proxy_of(f"{host}:50051") is None) is is_direct


def test_no_proxy_is_no_part_of_an_error() -> None:
    assert through(None) == ""
