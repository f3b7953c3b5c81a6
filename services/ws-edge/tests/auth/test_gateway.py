"""The consumer is read from the headers of the gateway and from nobody else."""

from base64 import urlsafe_b64encode
from typing import Any

import pytest

from ws_edge.auth.gateway import CLOCK_LEEWAY_S, MAX_HEADERS, MAX_TIME_S, Credential, Gateway, check_headers
from ws_edge.errors import GatewayRequiredError, TooManyHeadersError
from ws_edge.model.authorization import Consumer

Headers = dict[bytes, bytes]

ALICE: Headers = {
    b"x-gateway-secret": b"the-secret",
    b"x-gateway-claims": b"none",
    b"x-consumer-custom-id": b"customer-0001",
    b"x-consumer-username": b"alice",
    b"x-consumer-groups": b"customers",
    b"x-forwarded-for": b"203.0.113.7, 198.51.100.2",
}
NOW = 1724848100.0
OPERATOR = ALICE | {b"x-consumer-username": b"operator", b"x-consumer-groups": b"other, staff"}
NO_ID = {b"x-consumer-custom-id": b"none"}


def scope(headers: Headers, *more: tuple[bytes, bytes]) -> dict[str, Any]:
    return {"headers": [*headers.items(), *more], "client": ("192.0.2.9", 1234)}


def claims(text: str) -> Headers:
    return {b"x-gateway-claims": urlsafe_b64encode(text.encode()).rstrip(b"=")}


@pytest.fixture
def gateway() -> Gateway:
    return Gateway(["the-secret", "the-next-one"], lambda: NOW)


def test_the_gateways_headers_name_the_consumer(gateway: Gateway) -> None:
    assert gateway.caller(scope(ALICE)).consumer == Consumer("customer-0001", "alice", False)
    assert gateway.caller(scope(OPERATOR | NO_ID)).consumer == Consumer("", "operator", True)


@pytest.mark.parametrize("name", ALICE)
@pytest.mark.parametrize("headers", [ALICE, OPERATOR])
def test_a_call_without_one_of_the_gateways_headers_is_refused(gateway: Gateway, headers: Headers, name: bytes) -> None:
    for lacking in ({each: value for each, value in headers.items() if each != name}, headers | {name: b" "}):
        with pytest.raises(GatewayRequiredError):
            gateway.caller(scope(lacking))


@pytest.mark.parametrize(
    "headers",
    [
        scope({}),
        scope(ALICE | {b"x-gateway-secret": b"wrong"}),
        scope(ALICE | {b"x-gateway-secret": b"the-secret,the-next-one"}),
        scope(ALICE | {b"x-gateway-secret": "ü".encode()}),
        scope(ALICE | NO_ID),
        scope(ALICE | NO_ID | {b"x-consumer-groups": b"staffing"}),
        scope(ALICE | {b"x-forwarded-for": b"203.0.113.7,"}),
        scope(ALICE | {b"x-consumer-custom-id": b"customer-0001, customer-0002"}),
        scope(ALICE | {b"x-consumer-username": b"alice,bob"}),
        scope(ALICE | {b"x-gateway-claims": b"none,none"}),
    ],
)
def test_calls_that_did_not_come_through_the_gateway_are_refused(gateway: Gateway, headers: dict[str, Any]) -> None:
    with pytest.raises(GatewayRequiredError):
        gateway.caller(headers)


@pytest.mark.parametrize("name", [*ALICE, b"x-consumer-id", b"x-anonymous-consumer", b"x-authenticated-groups"])
def test_a_header_that_decides_stands_once(name: bytes) -> None:
    check_headers(ALICE.items())
    for again in (name, name.replace(b"-", b"_")):
        headers = [*(ALICE | {name: b"1"}).items(), (again, b"2")]
        if name == b"x-forwarded-for":
            check_headers(headers)  # a list: its last entry counts
        else:
            with pytest.raises(GatewayRequiredError, match=f"{name.decode()} was sent twice"):
                check_headers(headers)


def test_as_many_headers_are_read_as_can_be_checked() -> None:
    headers = [(f"x-{number}".encode(), b"") for number in range(MAX_HEADERS)]
    check_headers(headers)

    with pytest.raises(TooManyHeadersError):
        check_headers([*headers, (b"x-more", b"")])


def test_all_secrets_are_accepted_while_they_are_rotated(gateway: Gateway) -> None:
    for secret in (b"the-secret", b"the-next-one"):
        assert gateway.caller(scope(ALICE | {b"x-gateway-secret": secret})).consumer.id == "customer-0001"


@pytest.mark.parametrize(
    ("text", "credential"),
    [
        ('{"exp": 1724848496, "iat": 1724848000, "iss": "x"}', Credential(1724848496.0, 1724848000.0)),
        ('{"exp": 1724848496.5}', Credential(1724848496.5)),
        (f'{{"exp": {MAX_TIME_S}}}', Credential(MAX_TIME_S)),
        ("{}", Credential()),
    ],
)
def test_the_times_of_a_token_are_read_from_its_claims(gateway: Gateway, text: str, credential: Credential) -> None:
    assert gateway.caller(scope(ALICE | claims(text))).credential == credential


def test_a_credential_that_is_no_token_has_no_times(gateway: Gateway) -> None:
    assert gateway.caller(scope(ALICE)).credential == Credential()


@pytest.mark.parametrize("time", ['"soon"', "true", "-1", "NaN", "1e30", "1e999", "253402300800"])
def test_a_token_whose_times_make_no_sense_is_refused(gateway: Gateway, time: str) -> None:
    with pytest.raises(GatewayRequiredError, match="claim"):
        gateway.caller(scope(ALICE | claims(f'{{"exp": {time}}}')))


@pytest.mark.parametrize("text", ["nonsense", "[]"])
def test_unreadable_claims_are_refused(gateway: Gateway, text: str) -> None:
    with pytest.raises(GatewayRequiredError, match="claim"):
        gateway.caller(scope(ALICE | claims(text)))


def test_the_address_is_the_one_that_the_gateway_added(gateway: Gateway) -> None:
    assert gateway.caller(scope(ALICE)).address == "198.51.100.2"
    assert gateway.caller(scope(ALICE, (b"x-forwarded-for", b"192.0.2.1"))).address == "192.0.2.1"


@pytest.mark.parametrize("name", ["nbf", "iat"])
def test_a_token_that_holds_later_is_refused_but_for_the_leeway_of_clocks(gateway: Gateway, name: str) -> None:
    gateway.caller(scope(ALICE | claims(f'{{"{name}": {NOW + CLOCK_LEEWAY_S}}}')))

    with pytest.raises(GatewayRequiredError, match=f"{name} lies in the future"):
        gateway.caller(scope(ALICE | claims(f'{{"{name}": {NOW + CLOCK_LEEWAY_S + 1}}}')))


@pytest.mark.parametrize(
    ("forwarded", "address"),
    [
        (b"203.0.113.7:51234", "203.0.113.7"),
        (b"192.0.2.1, 203.0.113.7:51234", "203.0.113.7"),
        (b"[2001:db8::1]:51234", "2001:db8::1"),
        (b"[2001:db8::1]", "2001:db8::1"),
        (b"2001:db8::1", "2001:db8::1"),
        (b"unknown", "unknown"),
    ],
)
def test_the_port_of_a_connection_is_no_part_of_its_address(gateway: Gateway, forwarded: bytes, address: str) -> None:
    assert gateway.caller(scope(ALICE | {b"x-forwarded-for": forwarded})).address == address
