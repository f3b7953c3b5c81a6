"""Metrics and health over HTTP."""

import socket
import urllib.error
import urllib.request

import pytest
from prometheus_client import CollectorRegistry

from stream_processor.errors import SettingsError
from stream_processor.metrics import Metrics
from stream_processor.operation.health import Readiness, serve


@pytest.fixture
def metrics() -> Metrics:
    return Metrics(CollectorRegistry())


def get(port: int, path: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}") as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def test_it_is_alive_before_it_is_ready(metrics: Metrics) -> None:
    readiness = Readiness(metrics)
    with serve("127.0.0.1", 0, metrics, readiness) as port:
        assert get(port, "/healthz") == (200, "alive\n")
        assert get(port, "/readyz") == (503, "starting\n")
        assert "stream_processor_ready 0.0" in get(port, "/metrics")[1]
        readiness.is_ready()
        assert get(port, "/readyz") == (200, "ready\n")
        assert "stream_processor_ready 1.0" in get(port, "/metrics")[1]
        assert get(port, "/other")[0] == 404


def test_a_port_in_use_is_told_with_its_variable(metrics: Metrics) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with (
            pytest.raises(SettingsError, match=f"STREAM_PROCESSOR_METRICS_PORT: cannot listen on 127.0.0.1:{port}"),
            serve("127.0.0.1", port, metrics, Readiness(metrics)),
        ):
            pass
