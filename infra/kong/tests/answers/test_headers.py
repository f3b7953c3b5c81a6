"""Headers that reach the edge beside the request itself, and headers that come back beside the answer."""

import json
from uuid import UUID

import httpx
import pytest

from testkit.gateway_under_test import GatewayUnderTest, token

ALICE = {"apikey": "alice-demo-key"}
OPERATOR_PASSWORD = "Basic b3BlcmF0b3I6b3BlcmF0b3ItZGVtby1wYXNzd29yZA=="
FORGED = {
    "X-Gateway-Secret": "forged",
    "X-Gateway-Claims": "forged",
    "X-Consumer-ID": "forged",
    "X-Consumer-Custom-ID": "forged",
    "X-Consumer-Username": "forged",
    "X-Consumer-Groups": "staff, forged",
    "X-Authenticated-Groups": "staff, forged",
    "X-Credential-Identifier": "forged",
    "X-Credential-Username": "forged",
    "X-Anonymous-Consumer": "forged",
}


@pytest.mark.parametrize("path", ["/v1/x", "/update/orders/1", "/docs", "/", "/v1/tickets/stream"])
def test_the_edge_gets_the_secret_and_nothing_that_is_forged(gateway: GatewayUnderTest, path: str) -> None:
    arrived = gateway.get(path, ALICE | FORGED).json()["headers"]

    assert arrived["x-gateway-secret"] == gateway.secret
    assert not [name for name, value in arrived.items() if "forged" in value]


@pytest.mark.parametrize("path", ["/v1/x", "/docs", "/v1/tickets/stream"])
def test_what_is_forged_twice_or_with_underscores_does_not_get_through(gateway: GatewayUnderTest, path: str) -> None:
    again = [(name.lower(), value) for name, value in FORGED.items()]
    underscored = [(name.replace("-", "_"), value) for name, value in FORGED.items()]
    forged = [*ALICE.items(), *FORGED.items(), *again, *underscored]
    arrived = httpx.get(gateway.http + path, headers=forged).json()["headers"]

    assert arrived["x-gateway-secret"] == gateway.secret
    assert not [name for name, value in arrived.items() if "forged" in value]


@pytest.mark.parametrize("path", ["/docs", "/v1/tickets/stream"])
def test_what_is_forged_after_a_hundred_headers_does_not_get_through(gateway: GatewayUnderTest, path: str) -> None:
    """Kong sees as many as KONG_LUA_MAX_REQ_HEADERS says; Envoy refuses so many."""
    many = [*((f"X-{number}", "1") for number in range(200)), *FORGED.items()]
    answer = httpx.get(gateway.http + path, headers=many)

    assert answer.status_code in (200, 431)
    assert "forged" not in answer.text


def test_what_is_forged_for_a_socket_does_not_get_through(gateway: GatewayUnderTest) -> None:
    with gateway.socket("/v1/stream", ALICE | FORGED) as socket:
        arrived = socket.recv()

    assert "forged" not in arrived


def test_the_edge_gets_the_claims_of_a_token_and_not_its_signature(gateway: GatewayUnderTest) -> None:
    shown = token("alice", sub="x")
    header, claims, signature = shown.split(".")
    answer = gateway.get("/v1/x", {"Authorization": f"Bearer {shown}"})

    assert answer.json()["headers"]["x-gateway-claims"] == claims
    assert header not in answer.text
    assert signature not in answer.text


@pytest.mark.parametrize(
    "headers",
    [
        ALICE,
        {"Authorization": "Basic YWxpY2U6YWxpY2UtZGVtby1wYXNzd29yZA=="},
        ALICE | {"Authorization": f"Bearer {token('alice', expires_in=-1)}"},
        ALICE | {"Authorization": "Bearer a.b.c"},
    ],
)
def test_without_a_token_that_holds_there_are_no_claims(gateway: GatewayUnderTest, headers: dict[str, str]) -> None:
    assert gateway.get("/v1/x", headers | FORGED).json()["headers"]["x-gateway-claims"] == "none"


def test_a_socket_brings_the_claims_of_its_token(gateway: GatewayUnderTest) -> None:
    shown = token("alice")
    with gateway.socket("/v1/stream", {"Authorization": f"Bearer {shown}"}) as socket:
        arrived = json.loads(socket.recv())

    assert arrived["headers"]["x-gateway-claims"] == shown.split(".")[1]


DECIDING = {
    "x-gateway-claims": "none",
    "x-consumer-custom-id": "operator",
    "x-consumer-username": "operator",
    "x-consumer-groups": "staff",
}


@pytest.mark.parametrize("path", ["/v1/x", "/v1/shards"])
@pytest.mark.parametrize("headers", [{"apikey": "operator-demo-key"}, {"Authorization": OPERATOR_PASSWORD}])
def test_the_edge_gets_every_header_that_decides(gateway: GatewayUnderTest, path: str, headers: dict[str, str]) -> None:
    arrived = gateway.get(path, headers).json()["headers"]

    assert DECIDING.items() <= arrived.items()
    assert arrived["x-forwarded-for"]


@pytest.mark.parametrize("name", [*DECIDING, "x-gateway-secret"])
def test_the_header_connection_takes_a_header_away_but_puts_no_other_in_its_place(
    gateway: GatewayUnderTest, name: str
) -> None:
    """Kong takes away the headers that `Connection` names, after its plugins ran; the edge refuses that."""
    named = [("apikey", "operator-demo-key"), ("Connection", f"keep-alive, {name}"), (name, "forged")]
    truth = gateway.get("/v1/x", {"apikey": "operator-demo-key"}).json()["headers"][name]
    arrived = httpx.get(gateway.http + "/v1/x", headers=named).json()["headers"].get(name)

    assert arrived in (None, truth)


def test_the_public_routes_know_nobody(gateway: GatewayUnderTest) -> None:
    answer = gateway.get("/openapi.json")

    assert answer.status_code == 200
    assert not [name for name in answer.json()["headers"] if name.startswith(("x-consumer", "x-gateway-claims"))]


def test_a_correlation_id_is_made_and_told_to_both_sides(gateway: GatewayUnderTest) -> None:
    answer = gateway.get("/v1/x", ALICE)
    other = gateway.get("/v1/x", ALICE)

    assert UUID(answer.headers["x-correlation-id"])
    assert answer.json()["headers"]["x-correlation-id"] == answer.headers["x-correlation-id"]
    assert other.headers["x-correlation-id"] != answer.headers["x-correlation-id"]


def test_a_correlation_id_that_the_client_gives_is_kept(gateway: GatewayUnderTest) -> None:
    answer = gateway.get("/v1/x", ALICE | {"X-Correlation-ID": "given"})

    assert answer.headers["x-correlation-id"] == "given"
    assert answer.json()["headers"]["x-correlation-id"] == "given"


def test_a_refusal_has_a_correlation_id_too(gateway: GatewayUnderTest) -> None:
    assert gateway.get("/v1/x", {"X-Correlation-ID": "given"}).headers["x-correlation-id"] == "given"


def test_the_edge_learns_where_the_client_is(gateway: GatewayUnderTest) -> None:
    forged = {"X-Forwarded-Host": "forged", "X-Forwarded-Proto": "forged", "X-Real-IP": "forged"}
    arrived = gateway.get("/v1/x?a=b", ALICE | forged).json()["headers"]

    assert arrived["x-forwarded-proto"] == "http"
    assert arrived["x-forwarded-host"] == gateway.http.removeprefix("http://").partition(":")[0]
    assert arrived["x-forwarded-path"] == "/v1/x"
    assert arrived["x-real-ip"] in arrived["x-forwarded-for"]
    assert arrived["host"] == "ws-edge:8080"


@pytest.mark.parametrize("path", ["/v1/x", "/docs", "/"])
def test_an_answer_of_the_edge_does_not_say_what_runs_there(gateway: GatewayUnderTest, path: str) -> None:
    answer = gateway.get(path, ALICE)

    assert answer.status_code == 200
    assert "server" not in answer.headers


@pytest.mark.parametrize(("path", "headers", "status"), [("/v1/x", ALICE, 200), ("/v1/x", {}, 401), ("/", {}, 200)])
def test_no_browser_takes_an_answer_for_something_else(
    gateway: GatewayUnderTest, path: str, headers: dict[str, str], status: int
) -> None:
    answer = gateway.get(path, headers)

    assert answer.status_code == status
    assert answer.headers.get_list("x-content-type-options") == ["nosniff"]
