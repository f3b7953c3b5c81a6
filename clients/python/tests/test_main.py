"""How the command ends."""

import asyncio
from typing import TYPE_CHECKING

import grpc
import pytest

from statecast_client.__main__ import main

if TYPE_CHECKING:
    from conftest import Cluster


async def status(cluster: "Cluster", *arguments: str) -> int:
    """Runs the command in a thread of its own; returns its exit status."""
    addresses = ",".join(instance.address for instance in cluster.instances)
    return await asyncio.to_thread(main, arguments, {"STATECAST_ADDRESS": addresses})


async def test_an_answered_command_ends_with_0(cluster: "Cluster", capsys: pytest.CaptureFixture[str]) -> None:
    assert await status(cluster, "scan", "rows", "g", "--limit", "2") == 0
    assert capsys.readouterr().out.splitlines() == ["g0  {}", "g1  {}"]


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (grpc.StatusCode.NOT_FOUND, 2),
        (grpc.StatusCode.INVALID_ARGUMENT, 2),
        (grpc.StatusCode.UNAVAILABLE, 3),
        (grpc.StatusCode.RESOURCE_EXHAUSTED, 3),
        (grpc.StatusCode.FAILED_PRECONDITION, 4),
    ],
)
async def test_a_failure_is_one_line_and_its_status(
    cluster: "Cluster", code: grpc.StatusCode, expected: int, capsys: pytest.CaptureFixture[str]
) -> None:
    for instance in cluster.instances:
        instance.failure = code

    assert await status(cluster, "get", "rows", "x") == expected
    error = capsys.readouterr().err
    assert error.startswith("statecast: ")
    assert len(error.splitlines()) == 1


async def test_half_an_identity_is_refused(cluster: "Cluster", capsys: pytest.CaptureFixture[str]) -> None:
    assert await status(cluster, "shards", "--tls-key", "key.pem") == 2
    assert "a certificate and its key go together" in capsys.readouterr().err


async def test_no_address_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert await asyncio.to_thread(main, ["shards", "--address", ","], {}) == 2
    assert "addresses: there are none" in capsys.readouterr().err
