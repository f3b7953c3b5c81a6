"""The consumer is read from the headers of the gateway and from nobody else."""

from base64 import urlsafe_b64encode
from typing import Any

import pytest

from ws_edge.auth.gateway import MAX_TIME_S, Credential, Gateway
from ws_edge.authorization import Consumer
from ws_edge.errors import GatewayRequiredError

GATEWAY = (b"x-gateway-secret", b"the-secret")
ALICE = (b"x-consumer-custom-id", b"customer-0001")


def scope(*headers: tuple[bytes, bytes]) -> dict[str, Any]:
    return {"headers": headers, "client": ("192.0.2.9", 1234)}


def claims(text: str) -> tuple[bytes, bytes]:
    return b"x-gateway-claims", urlsafe_b64encode(text.encode()).rstrip(b"=")


@pytest.fixture
def gateway() -> Gateway:
    return Gateway(["the-secret", "the-next-one"])


def test_the_gateways_headers_name_the_consumer(gateway: Gateway) -> None:
    customer = scope(GATEWAY, ALICE, (b"x-consumer-username", b"alice"))
    staff = scope(GATEWAY, (b"x-consumer-username", b"operator"), (b"x-consumer-groups", b"other, staff"))

    assert gateway.caller(customer).consumer == Consumer("customer-0001", "alice", False)
    assert gateway.caller(staff).consumer == Consumer("", "operator", True)


@pytest.mark.parametrize(
    "headers",
    [
        [],
        [ALICE],
        [(b"x-gateway-secret", b"wrong"), ALICE],
        [(b"x-gateway-secret", b""), ALICE],
        [(b"x-gateway-secret", b"the-secret,the-next-one"), ALICE],
        [(b"x-gateway-secret", "ü".encode()), ALICE],
        [GATEWAY],
        [GATEWAY, (b"x-consumer-custom-id", b" "), (b"x-consumer-groups", b"staffing")],
        [GATEWAY, GATEWAY, ALICE],
        [GATEWAY, ALICE, (b"x-consumer-custom-id", b"customer-0002")],
        [GATEWAY, ALICE, claims("{}"), claims("{}")],
    ],
)
def test_calls_that_did_not_come_through_the_gateway_are_refused(
    gateway: Gateway, headers: list[tuple[bytes, bytes]]
) -> None:
    with pytest.raises(GatewayRequiredError):
        gateway.caller(scope(*headers))


def test_all_secrets_are_accepted_while_they_are_rotated(gateway: Gateway) -> None:
    for secret in (b"the-secret", b"the-next-one"):
        assert gateway.caller(scope((b"x-gateway-secret", secret), ALICE)).consumer.id == "customer-0001"


@pytest.mark.parametrize(
    ("text", "credential"),
    [
        ('{"exp": 1724848496, "iat": 1724848000, "iss": "x"}', Credential(1724848496.0, 1724848000.0)),
        ('{"exp": 1724848496.5}', Credential(1724848496.5)),
        ('{"exp": 1e999}', Credential(MAX_TIME_S)),
        ("{}", Credential()),
    ],
)
def test_the_times_of_a_token_are_read_from_its_claims(gateway: Gateway, text: str, credential: Credential) -> None:
    assert gateway.caller(scope(GATEWAY, ALICE, claims(text))).credential == credential


@pytest.mark.parametrize("headers", [[], [(b"x-gateway-claims", b"none")]])
def test_credentials_without_claims_have_no_times(gateway: Gateway, headers: list[tuple[bytes, bytes]]) -> None:
    assert gateway.caller(scope(GATEWAY, ALICE, *headers)).credential == Credential()


@pytest.mark.parametrize("text", ["nonsense", "[]", '{"exp": "soon"}', '{"exp": true}', '{"exp": -1}', '{"exp": NaN}'])
def test_unreadable_claims_are_refused(gateway: Gateway, text: str) -> None:
    with pytest.raises(GatewayRequiredError, match="claim"):
        gateway.caller(scope(GATEWAY, ALICE, claims(text)))


def test_the_address_is_the_one_that_the_gateway_added(gateway: Gateway) -> None:
    forwarded = (b"x-forwarded-for", b"203.0.113.7, 198.51.100.2")

    assert gateway.caller(scope(GATEWAY, ALICE, forwarded)).address == "198.51.100.2"
    assert gateway.caller(scope(GATEWAY, ALICE)).address == "192.0.2.9"
