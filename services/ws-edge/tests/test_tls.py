"""Certificates of the settings are checked before anything is started, and then prove who is who."""

import json
import ssl
from pathlib import Path
from typing import Any

import grpc
import pytest
import trustme
from httpx import AsyncClient, TransportError
from websockets.asyncio.client import connect

from ws_edge.errors import SettingsError, UnavailableError
from ws_edge.querying.addresses import Addresses
from ws_edge.querying.query_client import QueryClient
from ws_edge.settings import Settings
from ws_edge.testing.edge import SECRET, Clock, RunningEdge
from ws_edge.testing.fake_query_service import FakeQueryService
from ws_edge.tls import port_tls, query_tls, read

ALICE = {"X-Consumer-Custom-ID": "customer-0001"}


class Files:
    """A certificate, its key and its CA, as PEM files."""

    def __init__(self, directory: Path, authority: trustme.CA) -> None:
        issued = authority.issue_cert("127.0.0.1")
        self.certificate = directory / "certificate.pem"
        self.key = directory / "key.pem"
        self.ca = directory / "ca.pem"
        self.missing = directory / "missing.pem"
        self.rubbish = directory / "rubbish.pem"
        self.certificate.write_bytes(b"".join(blob.bytes() for blob in issued.cert_chain_pems))
        self.key.write_bytes(issued.private_key_pem.bytes())
        self.ca.write_bytes(authority.cert_pem.bytes())
        self.rubbish.write_bytes(b"\xffnot a certificate")


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory, authority: trustme.CA) -> Files:
    return Files(tmp_path_factory.mktemp("tls"), authority)


def settings(**given: Any) -> Settings:
    return Settings.model_validate({"gateway_secret": SECRET} | given)


def trust(authority: trustme.CA, shown: trustme.LeafCert | None = None) -> ssl.SSLContext:
    """A client that trusts the authority, and shows a certificate if it has one."""
    context = ssl.create_default_context()
    authority.configure_trust(context)
    if shown is not None:
        shown.configure_cert(context)
    return context


def test_without_files_there_is_no_tls() -> None:
    tls = read(settings())

    assert (tls.port, tls.query) == (None, None)


def test_only_a_ca_makes_tls_mutual(files: Files) -> None:
    one_sided = port_tls(settings(tls_certificate=files.certificate, tls_key=files.key))
    mutual = port_tls(settings(tls_certificate=files.certificate, tls_key=files.key, tls_client_ca=files.ca))

    assert one_sided is not None
    assert not one_sided.mutual
    assert mutual is not None
    assert mutual.mutual


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"tls_certificate": "certificate"}, "TLS_KEY is missing"),
        ({"tls_key": "key"}, "TLS_CERTIFICATE is missing"),
        ({"tls_client_ca": "ca"}, "TLS_CLIENT_CA needs WS_EDGE_TLS_CERTIFICATE"),
        ({"tls_certificate": "missing", "tls_key": "key"}, "TLS_CERTIFICATE=.*missing.pem: it cannot be read: No such"),
        ({"tls_certificate": "rubbish", "tls_key": "key"}, "TLS_CERTIFICATE=.*: it is not a certificate"),
        ({"tls_certificate": "ca", "tls_key": "key"}, "TLS_KEY=.*: it is not the key of .*ca.pem"),
        (
            {"tls_certificate": "certificate", "tls_key": "key", "tls_client_ca": "rubbish"},
            "TLS_CLIENT_CA=.*: it is not a certificate",
        ),
        ({"query_tls_certificate": "certificate"}, "QUERY_TLS_CERTIFICATE needs WS_EDGE_QUERY_TLS_CA"),
        ({"query_tls_ca": "missing"}, "QUERY_TLS_CA=.*missing.pem: it cannot be read"),
        ({"query_tls_ca": "ca", "query_tls_certificate": "certificate"}, "QUERY_TLS_KEY is missing"),
    ],
)
def test_what_is_wrong_is_named_in_one_line(files: Files, given: dict[str, str], named: str) -> None:
    with pytest.raises(SettingsError, match=named) as refusal:
        read(settings(**{name: getattr(files, file) for name, file in given.items()}))
    assert "\n" not in str(refusal.value)


async def test_with_mutual_tls_the_gateways_certificate_is_its_proof(authority: trustme.CA, files: Files) -> None:
    gateway = trust(authority, authority.issue_cert("gateway.example.org"))
    given: dict[str, Any] = {"tls_certificate": files.certificate, "tls_key": files.key, "tls_client_ca": files.ca}
    async with RunningEdge(**given) as edge:
        async with AsyncClient(base_url=f"https://{edge.address}", verify=gateway) as client:
            answer = await client.get("/update/orders/1", headers=ALICE)
            nobody = await client.get("/update/orders/1")
        async with connect(f"wss://{edge.address}/update/orders/1", ssl=gateway, additional_headers=ALICE) as socket:
            frame = json.loads(await socket.recv())

    assert (answer.status_code, answer.json()["error"]["code"]) == (404, "not_found")
    assert nobody.status_code == 403
    assert frame["data"]["status"] == "Unknown"


async def test_with_mutual_tls_nobody_else_comes_in_whatever_they_say(authority: trustme.CA, files: Files) -> None:
    stranger = trustme.CA().issue_cert("gateway.example.org")
    given: dict[str, Any] = {"tls_certificate": files.certificate, "tls_key": files.key, "tls_client_ca": files.ca}
    async with RunningEdge(**given) as edge:
        for context in (trust(authority), trust(authority, stranger)):
            async with AsyncClient(base_url=f"https://{edge.address}", verify=context) as client:
                with pytest.raises(TransportError):
                    await client.get("/update/orders/1", headers=edge.headers())


async def test_with_a_certificate_alone_the_secret_is_still_asked_for(authority: trustme.CA, files: Files) -> None:
    async with (
        RunningEdge(tls_certificate=files.certificate, tls_key=files.key) as edge,
        AsyncClient(base_url=f"https://{edge.address}", verify=trust(authority)) as client,
    ):
        refused = await client.get("/update/orders/1", headers=ALICE)
        answer = await client.get("/update/orders/1", headers=edge.headers())

    assert (refused.status_code, answer.status_code) == (403, 404)


async def test_the_query_service_is_asked_over_mutual_tls(files: Files) -> None:
    pair = [(files.key.read_bytes(), files.certificate.read_bytes())]
    asks = grpc.ssl_server_credentials(pair, files.ca.read_bytes(), require_client_auth=True)
    service = FakeQueryService()
    addresses = Addresses([await service.start(credentials=asks)], Clock(), 0.0)
    shown = settings(query_tls_ca=files.ca, query_tls_certificate=files.certificate, query_tls_key=files.key)
    nothing = settings(query_tls_ca=files.ca)
    good, bad = (QueryClient(addresses, 30.0, 10, query_tls(given)) for given in (shown, nothing))
    shards = await good.list_shards()
    with pytest.raises(UnavailableError):
        await bad.list_shards()
    await good.close()
    await bad.close()
    await service.stop()

    assert shards.stores
