"""The command `ws-edge revoke` says what it could not do."""

import asyncio
import sys
from asyncio.subprocess import PIPE

import pytest

from ws_edge.revoke_command import revoke
from ws_edge.settings import Settings


def settings(**more: object) -> Settings:
    return Settings.model_validate({"gateway_secret": "throw-away-secret", "kafka_timeout_ms": 500, **more})


@pytest.mark.parametrize(
    ("bootstrap", "consumer", "said"),
    [
        ("", "customer-0001", "WS_EDGE_KAFKA_BOOTSTRAP"),
        ("127.0.0.1:1", "customer-0001", "Kafka has not taken"),
        ("127.0.0.1:1", "", "no group"),
        ("127.0.0.1:1", "a\0b", "NUL"),
    ],
)
def test_what_was_not_taken_is_said_and_ends_with_1(
    bootstrap: str, consumer: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    status = revoke(settings(kafka_bootstrap=bootstrap), consumer, lift=False)

    assert status == 1
    assert said in capsys.readouterr().err


async def test_the_command_line_asks_for_a_consumer() -> None:
    process = await asyncio.create_subprocess_exec(sys.executable, "-m", "ws_edge", "revoke", stdout=PIPE, stderr=PIPE)
    _, errors = await process.communicate()

    assert process.returncode == 2
    assert b"CONSUMER" in errors
