"""Sockets through the gateway."""

import json

import pytest
from websockets.exceptions import InvalidStatus

from testkit.gateway_under_test import GatewayUnderTest

ALICE = {"apikey": "alice-demo-key"}


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


@pytest.mark.parametrize(("headers", "status"), [({}, 401), ({"apikey": "wrong"}, 401)])
def test_a_handshake_without_a_good_credential_is_refused(
    gateway: GatewayUnderTest, headers: dict[str, str], status: int
) -> None:
    with pytest.raises(InvalidStatus) as refusal, gateway.socket("/update/orders", headers):
        pass

    assert refusal.value.response.status_code == status


def test_a_large_frame_passes_because_the_edge_limits_frames(gateway: GatewayUnderTest) -> None:
    with gateway.socket("/v1/stream", ALICE) as socket:
        socket.recv()
        socket.send("x" * 500_000)

        assert len(socket.recv()) == 500_000
