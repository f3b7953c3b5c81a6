"""The command as operators run it: it starts, waits for the query service, answers, and ends as it should."""

import asyncio
import json
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process

import pytest
from httpx import AsyncClient, HTTPError

from testkit.ports import free_port
from testkit.ws_edge.edge import SECRET, FakeQueryService
from ws_edge.__main__ import revoke
from ws_edge.server import listen
from ws_edge.settings import Settings


async def start(*arguments: str, **settings: str) -> Process:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("WS_EDGE_")}
    environment |= {f"WS_EDGE_{name.upper()}": value for name, value in settings.items()}
    return await asyncio.create_subprocess_exec(
        sys.executable, "-m", "ws_edge", *arguments, env=environment, stdout=PIPE, stderr=PIPE
    )


async def until_status(client: AsyncClient, path: str, status: int) -> None:
    async with asyncio.timeout(60):
        while True:
            try:
                if (await client.get(path)).status_code == status:
                    return
            except HTTPError:
                pass  # it does not listen yet
            await asyncio.sleep(0.05)


async def test_the_process_waits_for_the_query_service_and_ends_with_0_on_sigterm() -> None:
    port, service = free_port(), FakeQueryService()
    address = await service.start()
    await service.stop()
    process = await start("run", gateway_secret=SECRET, port=str(port), query_addresses=address, instance="edge-1")
    async with AsyncClient(base_url=f"http://127.0.0.1:{port}", verify=False) as client:
        await until_status(client, "/healthz", 200)
        await until_status(client, "/readyz", 503)
        await service.start(address)
        await until_status(client, "/readyz", 200)
    process.send_signal(signal.SIGTERM)
    out, log = await process.communicate()
    await service.stop()

    assert process.returncode == 0
    assert out == b""
    lines = [json.loads(line) for line in log.decode().splitlines() if line.startswith("{")]
    events = [line["event"] for line in lines]
    assert events[0] == "listening"
    assert events[-2:] == ["draining", "stopped"]
    assert "query_service_found" in events
    assert all(line["instance"] == "edge-1" for line in lines)


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({}, "WS_EDGE_GATEWAY_SECRET"),
        ({"gateway_secret": SECRET, "port": "many"}, "WS_EDGE_PORT"),
        ({"gateway_secret": SECRET, "stores": "/nowhere/stores.yaml"}, "WS_EDGE_STORES: there is no such variable"),
    ],
)
async def test_what_prevents_the_start_is_one_line_and_status_2(settings: dict[str, str], reason: str) -> None:
    process = await start("run", **settings)
    _, log = await process.communicate()

    assert process.returncode == 2
    assert log.decode().startswith("ws-edge: ")
    assert log.decode().count("\n") == 1
    assert reason in log.decode()


async def test_a_port_in_use_is_one_line_and_status_2() -> None:
    with listen(Settings.model_validate({"port": 0, "gateway_secret": SECRET})) as held:
        port = held.getsockname()[1]
        process = await start("run", gateway_secret=SECRET, port=str(port))
        _, log = await process.communicate()

    assert process.returncode == 2
    assert log.decode().startswith(f"ws-edge: cannot listen on 127.0.0.1:{port} ")
    assert "WS_EDGE_PORT" in log.decode()
    assert log.decode().count("\n") == 1


@pytest.mark.parametrize(("command", "reason"), [("walk", b"invalid choice"), ("revoke", b"CONSUMER")])
async def test_a_wrong_command_is_refused(command: str, reason: bytes) -> None:
    process = await start(command)
    _, log = await process.communicate()

    assert process.returncode == 2
    assert reason in log


def revoke_settings(**more: object) -> Settings:
    return Settings.model_validate({"gateway_secret": "throw-away-secret", "kafka_timeout_ms": 500, **more})


@pytest.mark.parametrize(
    ("bootstrap", "consumer", "text"),
    [
        ("", "customer-0001", "WS_EDGE_KAFKA_BOOTSTRAP"),
        ("127.0.0.1:1", "customer-0001", "Kafka has not acknowledged"),
        ("127.0.0.1:1", "", "group is empty"),
        ("127.0.0.1:1", "a\0b", "NUL"),
    ],
)
def test_a_revocation_that_was_not_recorded_ends_with_1_and_the_reason(
    bootstrap: str, consumer: str, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    status = revoke(revoke_settings(kafka_bootstrap=bootstrap), consumer, lift=False)

    assert status == 1
    assert text in capsys.readouterr().err


@pytest.mark.parametrize(
    ("consumer", "status", "text"), [("kundé-ä", 1, "Kafka has not acknowledged"), (b"kund\xe9", 2, "is not UTF-8")]
)
async def test_the_consumer_to_revoke_is_utf_8_whatever_the_locale(
    consumer: str | bytes, status: int, text: str
) -> None:
    settings = {"WS_EDGE_GATEWAY_SECRET": SECRET, "WS_EDGE_KAFKA_BOOTSTRAP": "127.0.0.1:1"}
    more = {"WS_EDGE_KAFKA_TIMEOUT_MS": "100", "LC_ALL": "POSIX", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "ws_edge", "revoke", consumer, stderr=PIPE, env=os.environ | settings | more
    )
    _, errors = await process.communicate()

    assert process.returncode == status
    assert text in errors.decode()
