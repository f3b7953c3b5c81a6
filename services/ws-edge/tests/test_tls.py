"""Certificates of the settings are checked before anything is started, and then authenticate both sides."""

import json
import ssl
from typing import Any

import grpc
import pytest
import trustme
from httpx import AsyncClient, TransportError
from websockets.asyncio.client import connect

from statecast_service.errors import SettingsError
from testkit.certificates import PemFiles
from testkit.ws_edge.edge import SECRET, RunningEdge, gateway_headers
from testkit.ws_edge.fake_query_service import FakeQueryService
from ws_edge.errors import UnavailableError
from ws_edge.server import port_tls, query_tls
from ws_edge.settings import Settings
from ws_edge.upstream.query_client import QueryClient

ALICE = gateway_headers("not the secret", "customer-0001", "customers")


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory, authority: trustme.CA) -> PemFiles:
    return PemFiles(tmp_path_factory.mktemp("tls"), authority)


def settings(**fields: Any) -> Settings:
    return Settings.model_validate({"gateway_secret": SECRET} | fields)


def credentials(settings: Settings) -> grpc.ChannelCredentials:
    tls = query_tls(settings)
    assert tls is not None
    return tls.channel_credentials()


def trust(authority: trustme.CA, shown: trustme.LeafCert | None = None) -> ssl.SSLContext:
    """Returns a client that trusts the authority, and shows a certificate if it has one."""
    context = ssl.create_default_context()
    authority.configure_trust(context)
    if shown is not None:
        shown.configure_cert(context)
    return context


def test_without_files_there_is_no_tls() -> None:
    assert port_tls(settings()) is None
    assert query_tls(settings()) is None


def test_only_a_ca_makes_tls_mutual(files: PemFiles) -> None:
    one_sided = port_tls(settings(tls_certificate=files.certificate, tls_key=files.key))
    mutual = port_tls(settings(tls_certificate=files.certificate, tls_key=files.key, tls_client_ca=files.ca))

    assert one_sided is not None
    assert not one_sided.mutual
    assert mutual is not None
    assert mutual.mutual


@pytest.mark.parametrize(
    ("fields", "named"),
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
def test_a_wrong_file_is_named_in_one_line(files: PemFiles, fields: dict[str, str], named: str) -> None:
    wrong = settings(**{name: getattr(files, file) for name, file in fields.items()})

    with pytest.raises(SettingsError, match=named) as refusal:
        (query_tls if any(name.startswith("query") for name in fields) else port_tls)(wrong)
    assert "\n" not in str(refusal.value)


async def test_with_mutual_tls_a_certificate_of_a_probe_claims_no_consumer(
    authority: trustme.CA, files: PemFiles
) -> None:
    shown = trust(authority, authority.issue_cert("probe.example.org"))
    tls_fields: dict[str, Any] = {"tls_certificate": files.certificate, "tls_key": files.key, "tls_client_ca": files.ca}
    async with RunningEdge(**tls_fields) as edge:
        gateway = edge.headers()
        async with AsyncClient(base_url=f"https://{edge.address}", verify=shown) as client:
            ready = await client.get("/readyz")
            refused = await client.get("/update/orders/1", headers=ALICE)
            answer = await client.get("/update/orders/1", headers=gateway)
        async with connect(f"wss://{edge.address}/update/orders/1", ssl=shown, additional_headers=gateway) as socket:
            frame = json.loads(await socket.recv())

    assert ready.status_code == 200
    assert (refused.status_code, refused.json()["error"]["code"]) == (403, "gateway_required")
    assert (answer.status_code, answer.json()["error"]["code"]) == (404, "not_found")
    assert frame["data"]["status"] == "Unknown"


async def test_with_mutual_tls_nobody_else_can_connect(authority: trustme.CA, files: PemFiles) -> None:
    stranger = trustme.CA().issue_cert("gateway.example.org")
    tls_fields: dict[str, Any] = {"tls_certificate": files.certificate, "tls_key": files.key, "tls_client_ca": files.ca}
    async with RunningEdge(**tls_fields) as edge:
        for context in (trust(authority), trust(authority, stranger)):
            async with AsyncClient(base_url=f"https://{edge.address}", verify=context) as client:
                with pytest.raises(TransportError):
                    await client.get("/update/orders/1", headers=edge.headers())


async def test_without_mutual_tls_the_secret_is_still_required(authority: trustme.CA, files: PemFiles) -> None:
    async with (
        RunningEdge(tls_certificate=files.certificate, tls_key=files.key) as edge,
        AsyncClient(base_url=f"https://{edge.address}", verify=trust(authority)) as client,
    ):
        refused = await client.get("/update/orders/1", headers=ALICE)
        answer = await client.get("/update/orders/1", headers=edge.headers())

    assert (refused.status_code, answer.status_code) == (403, 404)


async def test_the_query_service_is_asked_over_mutual_tls(files: PemFiles) -> None:
    pair = [(files.key.read_bytes(), files.certificate.read_bytes())]
    asks = grpc.ssl_server_credentials(pair, files.ca.read_bytes(), require_client_auth=True)
    service = FakeQueryService()
    addresses = [await service.start(credentials=asks)]
    shown = settings(query_tls_ca=files.ca, query_tls_certificate=files.certificate, query_tls_key=files.key)
    nothing = settings(query_tls_ca=files.ca)
    good, bad = (
        QueryClient(addresses, 30.0, 10, credentials=credentials(client_settings))
        for client_settings in (shown, nothing)
    )
    shards = await good.list_shards()
    with pytest.raises(UnavailableError):
        await bad.list_shards()
    await good.close()
    await bad.close()
    await service.stop()

    assert shards.stores
