"""The gateway under test: Envoy with the rendered file, or the one that GATEWAY_HTTP and GATEWAY_HTTPS name."""

import os
import ssl
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import kong_envoy
from testkit.certificates import Certificates
from testkit.gateway_under_test import GatewayUnderTest, running_gateway, running_upstreams
from testkit.ports import free_ports
from testkit.waiting import wait_until

KONG_FILE = Path(__file__).resolve().parents[1] / "kong.yaml"


@pytest.fixture
def document() -> dict[str, Any]:
    """The gateway's file, freshly read."""
    return kong_envoy.load(KONG_FILE)


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    """A certificate for localhost, and the authority that signed it."""
    gateway_certificates = Certificates(tmp_path_factory.mktemp("tls"))
    gateway_certificates.ensure(datetime.now(UTC))
    return gateway_certificates


@pytest.fixture(scope="session")
def environment(certificates: Certificates) -> dict[str, str]:
    """The variables that the file reads."""
    return {
        "GATEWAY_SECRET": "secret-of-the-tests",
        "GATEWAY_TLS_CERTIFICATE": certificates.certificate.read_text(),
        "GATEWAY_TLS_KEY": certificates.key.read_text(),
    }


@pytest.fixture(scope="session")
def gateway(request: pytest.FixtureRequest) -> GatewayUnderTest:
    """The gateway with two upstreams behind it; both answer when a test begins."""
    name = "_foreign_gateway" if "GATEWAY_HTTP" in os.environ else "_rendered_gateway"
    under_test: GatewayUnderTest = request.getfixturevalue(name)

    def answers() -> bool:
        return under_test.get("/v1/x", {"apikey": "alice-demo-key"}).status_code == 200

    wait_until(answers, "the gateway answers")
    return under_test


@pytest.fixture(scope="session")
def _rendered_gateway(
    tmp_path_factory: pytest.TempPathFactory, certificates: Certificates, environment: dict[str, str]
) -> Iterator[GatewayUnderTest]:
    document, directory = kong_envoy.load(KONG_FILE), tmp_path_factory.mktemp("envoy")
    with running_gateway(document, environment, directory, free_ports(5), certificates.authority) as (gateway, _):
        yield gateway


@pytest.fixture(scope="session")
def _foreign_gateway() -> Iterator[GatewayUnderTest]:
    addresses = os.environ.get("GATEWAY_UPSTREAMS", "127.0.0.1:8080,127.0.0.2:8080").split(",")
    tls = ssl.create_default_context(cafile=os.environ.get("GATEWAY_CA"))
    if "GATEWAY_CA" not in os.environ:
        tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE
    secret = os.environ.get("GATEWAY_SECRET", "demo-gateway-secret")
    https = os.environ.get("GATEWAY_HTTPS", "https://localhost:8443")
    with running_upstreams(addresses) as upstreams:
        yield GatewayUnderTest(os.environ["GATEWAY_HTTP"], https, tls, secret, upstreams)
