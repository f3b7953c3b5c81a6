"""The gateway's own replies when it gets no answer from an upstream."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from testkit.gateway_under_test import GatewayUnderTest, running_gateway
from testkit.ports import free_ports

ALICE = {"apikey": "alice-demo-key"}


@pytest.fixture
def impatient_gateway(
    document: dict[str, Any], environment: dict[str, str], tmp_path: Path
) -> Iterator[GatewayUnderTest]:
    """A gateway that waits for half a second, and looks after its upstreams once a minute."""
    document["services"][0] |= {"read_timeout": 500, "write_timeout": 500}
    active = document["upstreams"][0]["healthchecks"]["active"]
    active["healthy"]["interval"] = active["unhealthy"]["interval"] = 60
    with running_gateway(document, environment, tmp_path, free_ports(5)) as (gateway, _):
        yield gateway


def test_an_upstream_that_is_too_slow_is_answered_with_504(impatient_gateway: GatewayUnderTest) -> None:
    answer = impatient_gateway.get("/v1/x?delay=5", ALICE)

    assert answer.status_code == 504
    assert answer.json()["message"] == "The upstream server is timing out"


def test_an_upstream_that_has_just_ended_is_answered_with_502(impatient_gateway: GatewayUnderTest) -> None:
    for upstream in impatient_gateway.upstreams:
        upstream.stop()
    answer = impatient_gateway.get("/v1/x", ALICE)

    assert answer.status_code == 502
    assert answer.json()["message"] == "An invalid response was received from the upstream server"
    assert answer.json()["request_id"] == answer.headers["x-kong-request-id"]
