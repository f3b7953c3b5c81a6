"""Sockets through the gateway."""

import json
from base64 import b64encode

import pytest
from websockets.exceptions import InvalidStatus

from testkit.gateway_under_test import GatewayUnderTest

ALICE = {"apikey": "alice-demo-key"}


def basic(credential: str) -> dict[str, str]:
    """Returns the header of Basic authentication for `username:password`."""
    return {"Authorization": f"Basic {b64encode(credential.encode()).decode()}"}


@pytest.mark.parametrize("secure", [False, True])
@pytest.mark.parametrize("path", ["/update/orders", "/update/orders/order-000001", "/v1/stream"])
def test_a_socket_carries_text_both_ways(gateway: GatewayUnderTest, path: str, secure: bool) -> None:
    with gateway.socket(path, ALICE, secure=secure) as socket:
        arrived = json.loads(socket.recv())
        for number in range(100):
            socket.send(f"text {number}")

        assert [socket.recv() for _ in range(100)] == [f"text {number}" for number in range(100)]
    assert arrived["headers"]["x-consumer-custom-id"] == "customer-0001"
    assert arrived["headers"]["x-gateway-secret"] == gateway.secret


def test_the_ticket_of_a_browser_reaches_the_edge_among_its_subprotocols(gateway: GatewayUnderTest) -> None:
    offers = "statecast.push.v2+json, statecast.ticket.a-b_c.d"
    with gateway.socket("/v1/tickets/stream", {"Sec-WebSocket-Protocol": offers}) as socket:
        arrived = json.loads(socket.recv())

    assert arrived["headers"]["sec-websocket-protocol"] == offers


@pytest.mark.parametrize(
    ("credential", "customer"),
    [("username:password", "customer-0004"), ("alice:alice-demo-password", "customer-0001")],
)
def test_a_password_opens_a_socket_over_tls(gateway: GatewayUnderTest, credential: str, customer: str) -> None:
    with gateway.socket("/update/orders", basic(credential), secure=True) as socket:
        arrived = json.loads(socket.recv())

    assert arrived["headers"]["x-consumer-custom-id"] == customer
    assert "authorization" not in arrived["headers"]


def test_the_header_of_the_published_example_is_that_of_the_demo_user() -> None:
    assert basic("username:password") == {"Authorization": "Basic dXNlcm5hbWU6cGFzc3dvcmQ="}


@pytest.mark.parametrize("secure", [False, True])
@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"apikey": "wrong"},
        basic("username:wrong"),
        basic("username:"),
        basic("nobody:password"),
        basic("anonymous:"),
        {"Authorization": "Basic"},
    ],
    ids=str,
)
def test_a_handshake_without_a_good_credential_is_refused(
    gateway: GatewayUnderTest, headers: dict[str, str], secure: bool
) -> None:
    with pytest.raises(InvalidStatus) as refusal, gateway.socket("/update/orders", headers, secure=secure):
        pass

    assert refusal.value.response.status_code == 401


def test_a_large_frame_passes_because_the_edge_limits_frames(gateway: GatewayUnderTest) -> None:
    with gateway.socket("/v1/stream", ALICE) as socket:
        socket.recv()
        socket.send("x" * 500_000)

        assert len(socket.recv()) == 500_000
