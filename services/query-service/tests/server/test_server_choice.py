"""Which gRPC server stands behind each port."""

from pathlib import Path
from typing import Any

import pytest
import trustme
from prometheus_client import CollectorRegistry
from structlog.testing import capture_logs

from query_service.metrics import Metrics
from query_service.server.limits import InFlight
from query_service.server.methods import QUERY, SHARD, Method
from query_service.server.server import Servers
from query_service.settings import Settings
from statecast_service.errors import SettingsError
from testkit.certificates import PemFiles
from testkit.ports import free_ports


@pytest.fixture(scope="module")
def tls(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Path]]:
    """The settings of TLS at each port."""
    files = PemFiles(tmp_path_factory.mktemp("tls"), trustme.CA())
    public = {"tls_certificate": files.certificate, "tls_key": files.key}
    shard = {"shard_tls_certificate": files.certificate, "shard_tls_key": files.key, "shard_tls_ca": files.ca}
    return {"none": {}, "public": public, "shard": shard, "both": {**public, **shard}}


def servers(**fields: Any) -> tuple[Servers, Settings]:
    port, shard_port = free_ports(2)
    settings = Settings(port=port, shard_port=shard_port, **fields)
    in_flight = InFlight(1000, Metrics(CollectorRegistry()))
    queries, shards = ([Method(name, "GetState", lambda *_: b"", in_flight)] for name in (QUERY, SHARD))
    return Servers(settings, queries, shards, in_flight), settings


@pytest.mark.parametrize(
    ("choice", "with_tls", "public", "internal"),
    [
        ("auto", "none", "native", "native"),
        ("auto", "public", "grpcio", "native"),
        ("auto", "shard", "native", "grpcio"),
        ("auto", "both", "grpcio", "grpcio"),
        ("native", "none", "native", "native"),
        ("grpcio", "none", "grpcio", "grpcio"),
        ("grpcio", "both", "grpcio", "grpcio"),
    ],
)
async def test_the_log_says_what_listens_on_which_port(
    tls: dict[str, dict[str, Path]], choice: str, with_tls: str, public: str, internal: str
) -> None:
    made, settings = servers(grpc_server=choice, **tls[with_tls])
    with capture_logs() as entries:
        await made.start()
    await made.stop(0)

    listening = [(entry["port"], entry["grpc_server"]) for entry in entries if entry["event"] == "listening"]
    assert listening == [(settings.port, public), (settings.shard_port, internal)]


@pytest.mark.parametrize(("with_tls", "variable"), [("public", "TLS_CERTIFICATE"), ("shard", "SHARD_TLS_CERTIFICATE")])
async def test_the_native_server_with_tls_is_refused_by_both_names(
    tls: dict[str, dict[str, Path]], with_tls: str, variable: str
) -> None:
    with pytest.raises(SettingsError, match=f"QUERY_SERVICE_GRPC_SERVER=native .*QUERY_SERVICE_{variable} "):
        servers(grpc_server="native", **tls[with_tls])
