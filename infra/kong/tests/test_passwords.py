"""Guessing passwords is limited by address, whether a guess is right or wrong."""

from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from testkit.gateway_under_test import GatewayUnderTest, running_gateway, token
from testkit.ports import free_ports

LIMIT = 5


def basic(password: str) -> dict[str, str]:
    return {"Authorization": "Basic " + b64encode(f"operator:{password}".encode()).decode()}


@pytest.fixture
def strict_gateway(document: dict[str, Any], environment: dict[str, str], tmp_path: Path) -> Iterator[GatewayUnderTest]:
    """A gateway that takes a few passwords an hour from an address, so that no new window begins."""
    for service in document["services"]:
        for route in service["routes"]:
            for plugin in route.get("plugins", []):
                if route["name"].endswith("passwords") and plugin["name"] == "rate-limiting":
                    plugin["config"] |= {"minute": 1000, "day": LIMIT}
    with running_gateway(document, environment, tmp_path, free_ports(5)) as (gateway, _):
        yield gateway


@pytest.mark.parametrize("path", ["/v1/x", "/v1/shards"])
def test_after_too_many_wrong_passwords_the_right_one_is_refused_too(
    strict_gateway: GatewayUnderTest, path: str
) -> None:
    guesses = [strict_gateway.get(path, basic(f"guess {number}")).status_code for number in range(LIMIT)]
    wrong, right = (strict_gateway.get(path, basic(password)) for password in ("wrong", "operator-demo-password"))

    assert guesses == [401] * LIMIT
    assert (wrong.status_code, right.status_code) == (429, 429)
    assert wrong.json()["message"] == right.json()["message"]


@pytest.mark.parametrize("spelling", ["basic {}", "BasicBasic {}", "Digest Basic {}", "Bearer x Basic {}", "bAsIc {}"])
def test_no_spelling_of_a_password_is_left_uncounted(strict_gateway: GatewayUnderTest, spelling: str) -> None:
    encoded = basic("operator-demo-password")["Authorization"].removeprefix("Basic ")
    headers = {"Authorization": spelling.format(encoded)}
    answers = [strict_gateway.get("/v1/x", headers).status_code for _ in range(LIMIT + 1)]

    assert answers[-1] == 429


def test_keys_and_tokens_are_not_held_up_by_guesses(strict_gateway: GatewayUnderTest) -> None:
    for _ in range(LIMIT + 1):
        strict_gateway.get("/v1/x", basic("wrong"))
    answers = [
        strict_gateway.get("/v1/x", headers)
        for headers in ({"apikey": "operator-demo-key"}, {"Authorization": f"Bearer {token('operator')}"})
    ]

    assert [answer.status_code for answer in answers] == [200, 200]
