"""Which requests go to the edge, and how the gateway answers the others."""

import httpx
import pytest

from testkit.gateway_under_test import GatewayUnderTest

ALICE = {"apikey": "alice-demo-key"}

PAGE_NAMES_BUT_NOT_QUITE = ["/operator/", "/operators", "/statecastxjs", "/page"]
NOWHERE = ["/nope", "/update", "/v1", "/v2/x", "/readyz", "/metrics", "/v1%2fshards"]


@pytest.mark.parametrize("path", [*NOWHERE, *PAGE_NAMES_BUT_NOT_QUITE])
def test_a_path_without_a_route_is_not_found(gateway: GatewayUnderTest, path: str) -> None:
    answer = gateway.get(path, ALICE)

    assert answer.status_code == 404
    assert answer.json()["message"] == "no Route matched with those values"


@pytest.mark.parametrize(
    ("sent", "arrives"),
    [
        ("/update/orders", "/update/orders"),
        ("/update/orders/order-000001", "/update/orders/order-000001"),
        ("/v1/stores", "/v1/stores"),
        ("/v1/stores/orders-by-customer/rows?group=c&limit=1", "/v1/stores/orders-by-customer/rows"),
        ("/v1/stores/a%20b/rows", "/v1/stores/a b/rows"),
        ("/v1/stores/./x//rows", "/v1/stores/x/rows"),
    ],
)
def test_a_path_reaches_the_edge_whole(gateway: GatewayUnderTest, sent: str, arrives: str) -> None:
    assert gateway.get(sent, ALICE).json()["path"] == arrives


def test_the_public_routes_can_only_be_read(gateway: GatewayUnderTest) -> None:
    assert gateway.get("/docs").status_code == 200
    assert httpx.post(gateway.http + "/docs").status_code == 404


@pytest.mark.parametrize(
    "path", ["/", "/?from=mail", "/operator", "/asyncapi.json", "/statecast.js", "/page/style.css"]
)
def test_the_pages_are_for_everybody_and_can_only_be_read(gateway: GatewayUnderTest, path: str) -> None:
    assert gateway.get(path).json()["path"] == path.partition("?")[0]
    assert httpx.post(gateway.http + path).status_code == 404


def test_the_same_answers_come_over_tls(gateway: GatewayUnderTest) -> None:
    with httpx.Client(verify=gateway.tls, base_url=gateway.https) as client:
        answer = client.get("/v1/x", headers=ALICE)

        assert answer.json()["headers"]["x-forwarded-proto"] == "https"
        assert client.get("/v1/x").status_code == 401
        assert client.get("/nope").status_code == 404
