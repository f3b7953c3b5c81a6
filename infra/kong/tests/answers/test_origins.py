"""Which sites' pages may read answers: the headers for a browser, before a page's request and with its answer."""

import httpx
import pytest

from testkit.gateway_under_test import TIMEOUT_S, GatewayUnderTest

ALICE = {"apikey": "alice-demo-key"}
LISTED = ["https://app.example.org", "http://localhost:3000"]
OTHERS = [
    "https://evil.example",
    "http://app.example.org",
    "https://app.example.org.evil.example",
    "https://app.example.org:8443",
    "http://localhost:3001",
    "null",
]


def preflight(gateway: GatewayUnderTest, origin: str, path: str = "/v1/tickets") -> httpx.Response:
    """Sends a browser's preflight request, which has no credential; returns the response."""
    asks = {"Origin": origin, "Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "apikey"}
    return httpx.options(gateway.http + path, headers=asks, timeout=TIMEOUT_S)


def words(answer: httpx.Response, name: str) -> set[str]:
    """Returns the words of a header that is a list."""
    return {word.strip().lower() for word in answer.headers.get(name, "").split(",")}


@pytest.mark.parametrize("path", ["/v1/tickets", "/update/orders/1", "/v1/shards"])
@pytest.mark.parametrize("origin", LISTED)
def test_a_preflight_of_a_listed_site_needs_no_credential(gateway: GatewayUnderTest, origin: str, path: str) -> None:
    answer = preflight(gateway, origin, path)

    assert (answer.status_code, answer.content) == (200, b"")
    assert answer.headers["access-control-allow-origin"] == origin
    assert answer.headers["access-control-allow-credentials"] == "true"
    assert answer.headers["access-control-max-age"] == "600"
    assert words(answer, "access-control-allow-methods") == {"get", "head", "post", "put", "delete"}
    assert {"authorization", "apikey", "content-type", "if-none-match"} < words(answer, "access-control-allow-headers")
    assert "origin" in words(answer, "vary")


@pytest.mark.parametrize("origin", OTHERS)
def test_a_preflight_of_another_site_allows_nothing(gateway: GatewayUnderTest, origin: str) -> None:
    answer = preflight(gateway, origin)

    assert "access-control-allow-origin" not in answer.headers
    assert "origin" in words(answer, "vary")


@pytest.mark.parametrize("origin", LISTED)
def test_a_page_of_a_listed_site_may_read_answers_and_refusals(gateway: GatewayUnderTest, origin: str) -> None:
    answer = gateway.get("/v1/x", ALICE | {"Origin": origin})
    refusal = gateway.get("/v1/x", {"Origin": origin})

    assert (answer.status_code, refusal.status_code) == (200, 401)
    for each in (answer, refusal):
        assert each.headers["access-control-allow-origin"] == origin
        assert {"etag", "retry-after"} < words(each, "access-control-expose-headers")


@pytest.mark.parametrize("origin", OTHERS)
def test_a_page_of_another_site_cannot_read_the_answer(gateway: GatewayUnderTest, origin: str) -> None:
    answer = gateway.get("/v1/x", ALICE | {"Origin": origin})

    assert answer.status_code == 200
    assert "access-control-allow-origin" not in answer.headers


def test_caches_keep_answers_to_different_sites_apart(gateway: GatewayUnderTest) -> None:
    answer = gateway.get("/docs")

    assert "origin" in words(answer, "vary")
    assert "access-control-allow-origin" not in answer.headers


@pytest.mark.parametrize(
    "headers", [{}, {"Origin": LISTED[0]}, {"Access-Control-Request-Method": "POST"}, {"X-Forwarded-For": "127.0.0.1"}]
)
def test_what_is_no_preflight_needs_a_credential(gateway: GatewayUnderTest, headers: dict[str, str]) -> None:
    assert httpx.options(gateway.http + "/v1/tickets", headers=headers, timeout=TIMEOUT_S).status_code == 401


@pytest.mark.parametrize("path", ["/nope", "/docs", "/statecast.js"])
def test_a_preflight_without_a_route_is_not_found(gateway: GatewayUnderTest, path: str) -> None:
    answer = preflight(gateway, LISTED[0], path)

    assert answer.status_code == 404
    assert "access-control-allow-origin" not in answer.headers


def test_a_preflight_has_a_correlation_id_and_takes_nothing_from_a_limit(gateway: GatewayUnderTest) -> None:
    answer = preflight(gateway, LISTED[0])

    assert answer.headers["x-correlation-id"]
    assert not [name for name in answer.headers if "ratelimit" in name]


def test_a_socket_opens_whatever_the_origin_because_the_edge_decides(gateway: GatewayUnderTest) -> None:
    for origin in (LISTED[0], OTHERS[0]):
        with gateway.socket("/v1/stream", ALICE | {"Origin": origin}) as socket:
            assert origin in str(socket.recv())
