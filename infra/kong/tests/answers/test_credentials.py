"""Authentication at the gateway, and the identity that it passes on."""

import json
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Callable

import httpx
import jwt
import pytest

from testkit.gateway_under_test import GatewayUnderTest, token


def basic(username: str, password: str) -> dict[str, str]:
    return {"Authorization": "Basic " + b64encode(f"{username}:{password}".encode()).decode()}


def bearer(text: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {text}"}


SECRETS = {"authorization", "proxy-authorization", "apikey"}
GOOD: dict[str, Callable[[], tuple[str, dict[str, str], str]]] = {
    "basic": lambda: ("", basic("alice", "alice-demo-password"), "alice"),
    "basic, in lower case": lambda: (
        "",
        {"Authorization": basic("alice", "alice-demo-password")["Authorization"].replace("Basic", "basic")},
        "alice",
    ),
    "basic, with more after its padding": lambda: (
        "",
        {"Authorization": "Basic YWxpY2U6YWxpY2UtZGVtby1wYXNzd29yZA== and junk"},
        "alice",
    ),
    "key in a header": lambda: ("", {"apikey": "alice-demo-key"}, "5c9d2b7e-0000-4000-8000-000000000001"),
    "token in a header": lambda: ("", bearer(token("alice")), "alice-demo-issuer"),
    "token with more claims": lambda: ("", bearer(token("alice", sub="x", aud="y", roles=["z"])), "alice-demo-issuer"),
    "wrong token but a good key": lambda: (
        "",
        bearer("nonsense") | {"apikey": "alice-demo-key"},
        "5c9d2b7e-0000-4000-8000-000000000001",
    ),
    "wrong key but a good password": lambda: (
        "",
        basic("alice", "alice-demo-password") | {"apikey": "nonsense"},
        "alice",
    ),
}

BAD: dict[str, Callable[[], tuple[str, dict[str, str]]]] = {
    "nothing": lambda: ("", {}),
    "wrong password": lambda: ("", basic("alice", "wrong")),
    "another's password": lambda: ("", basic("alice", "bob-demo-password")),
    "unknown user": lambda: ("", basic("nobody", "alice-demo-password")),
    "empty password": lambda: ("", basic("alice", "")),
    "the anonymous consumer": lambda: ("", basic("anonymous", "")),
    "basic without a colon": lambda: ("", {"Authorization": "Basic YWxpY2U="}),
    "basic that is no base64": lambda: ("", {"Authorization": "Basic %%%"}),
    "wrong key": lambda: ("", {"apikey": "wrong"}),
    "empty key": lambda: ("", {"apikey": ""}),
    "key in the query": lambda: ("?apikey=alice-demo-key", {}),
    "basic with junk before its padding": lambda: (
        "",
        {"Authorization": "Basic YWxpY2U6YWxpY2UtZGVtby1wYXNzd29yZA junk"},
    ),
    "basic, for the proxy": lambda: (
        "",
        {"Proxy-Authorization": basic("alice", "alice-demo-password")["Authorization"]},
    ),
    "token and junk": lambda: ("", bearer(f"{token('alice')} junk")),
    "expired token": lambda: ("", bearer(token("alice", expires_in=-1))),
    "token that expires now": lambda: ("", bearer(token("alice", expires_in=0))),
    "token without an expiry": lambda: ("", bearer(token("alice", exp=None))),
    "token signed with another's secret": lambda: (
        "",
        bearer(token("alice", secret="bob-demo-secret-of-32-characters")),
    ),
    "token of an unknown issuer": lambda: ("", bearer(token("alice", iss="nobody"))),
    "token without an issuer": lambda: ("", bearer(token("alice", iss=None))),
    "token of another algorithm": lambda: ("", bearer(token("alice", algorithm="HS384"))),
    "token without a signature": lambda: ("", bearer(token("alice").rpartition(".")[0] + ".")),
    "unsigned token": lambda: ("", bearer(jwt.encode({"iss": "alice-demo-issuer", "exp": 2**31}, "", "none"))),
    "nonsense for a token": lambda: ("", bearer("a.b.c")),
    "token in the wrong scheme": lambda: ("", {"Authorization": f"Token {token('alice')}"}),
    "token in the query": lambda: (f"?jwt={token('alice')}", {}),
}


@pytest.mark.parametrize("case", GOOD)
def test_one_good_credential_is_enough(gateway: GatewayUnderTest, case: str) -> None:
    query, headers, credential = GOOD[case]()
    answer = gateway.get("/v1/stores/x/rows" + query, headers)

    assert answer.status_code == 200
    arrived = answer.json()["headers"]
    assert arrived["x-consumer-username"] == "alice"
    assert arrived["x-consumer-custom-id"] == "customer-0001"
    assert arrived["x-consumer-groups"] == "customers"
    assert arrived["x-consumer-id"] == "3a1f0c5e-0000-4000-8000-000000000001"
    assert arrived["x-credential-identifier"] == credential
    assert "x-anonymous-consumer" not in arrived


@pytest.mark.filterwarnings("ignore:The HMAC key")  # another algorithm would want a longer secret
@pytest.mark.parametrize("case", BAD)
@pytest.mark.parametrize("path", ["/v1/stores/x/rows", "/update/orders/1", "/v1/shards"])
def test_without_a_good_credential_the_answer_is_401(gateway: GatewayUnderTest, case: str, path: str) -> None:
    query, headers = BAD[case]()
    answer = gateway.get(path + query, headers)

    assert answer.status_code == 401
    assert answer.json()["message"] == "Unauthorized"
    assert answer.headers["content-type"] == "application/json; charset=utf-8"


@pytest.mark.parametrize("path", ["/v1/stores/x/rows", "/v1/shards"])
@pytest.mark.parametrize("more", [("Authorization", "Basic junk"), ("authorization", f"Bearer {token('bob')}")])
def test_two_credentials_of_one_header_are_refused(gateway: GatewayUnderTest, path: str, more: tuple[str, str]) -> None:
    twice = [("Authorization", f"Bearer {token('operator')}"), more]

    assert httpx.get(gateway.http + path, headers=twice).status_code == 400


@pytest.mark.parametrize("issuer", [1, ["alice-demo-issuer"], {"a": "alice-demo-issuer"}])
def test_a_token_whose_issuer_is_no_text_is_refused(gateway: GatewayUnderTest, issuer: object) -> None:
    """Kong fails with 500 on it."""
    header, _, signature = token("alice").split(".")
    claims = urlsafe_b64encode(json.dumps({"iss": issuer, "exp": 2**31}).encode()).rstrip(b"=").decode()

    assert gateway.get("/v1/x", bearer(f"{header}.{claims}.{signature}")).status_code in (401, 500)


def test_no_credential_reaches_the_edge(gateway: GatewayUnderTest) -> None:
    shown = [
        ("", basic("alice", "alice-demo-password")),
        ("", {"apikey": "alice-demo-key"}),
        ("", bearer(token("alice")) | {"apikey": "alice-demo-key"}),
    ]
    for query, headers in shown:
        arrived = gateway.get("/v1/x" + query, headers).json()

        assert not SECRETS & set(arrived["headers"])


@pytest.mark.parametrize("path", ["/docs", "/", "/v1/tickets/stream"])
def test_no_credential_reaches_the_edge_where_none_is_asked_for(gateway: GatewayUnderTest, path: str) -> None:
    shown = basic("alice", "alice-demo-password") if path != "/v1/tickets/stream" else bearer(token("alice"))
    arrived = gateway.get(path, shown | {"Proxy-Authorization": "Basic x", "apikey": "alice-demo-key"}).json()

    assert not SECRETS & set(arrived["headers"])


def test_a_query_reaches_the_edge_as_it_was_sent(gateway: GatewayUnderTest) -> None:
    query = "from=2024-08-28T12:00:00Z&limit=10&text=a%2Fb+c&empty&=&%7a"

    assert gateway.get(f"/v1/x?{query}", {"apikey": "alice-demo-key"}).json()["query"] == query


def test_staff_alone_may_see_the_shards(gateway: GatewayUnderTest) -> None:
    refused = gateway.get("/v1/shards", {"apikey": "alice-demo-key"})

    assert refused.status_code == 403
    assert refused.json()["message"] == "You cannot consume this service"
    answer = gateway.get("/v1/shards", basic("operator", "operator-demo-password"))
    assert answer.status_code == 200
    assert answer.json()["headers"]["x-consumer-groups"] == "staff"


@pytest.mark.parametrize(
    "path", ["/v1/%73hards", "//v1/shards", "/v1//shards", "/v1/./shards", "/v1/stores/../shards", "/v1/shards?a=b"]
)
def test_no_spelling_of_the_path_gets_a_customer_to_the_shards(gateway: GatewayUnderTest, path: str) -> None:
    assert gateway.get(path, {"apikey": "alice-demo-key"}).status_code == 403
