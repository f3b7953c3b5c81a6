"""The server of metrics and health."""

import urllib.error
import urllib.request
from collections.abc import Iterator

import pytest
from prometheus_client import CollectorRegistry

from cdc_simulator.errors import PortInUseError
from cdc_simulator.health_server import health_server
from cdc_simulator.metrics import Metrics
from cdc_simulator.readiness import Readiness
from local_stack.ports import free_ports


def get(url: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


@pytest.fixture
def readiness() -> Readiness:
    return Readiness("starting")


@pytest.fixture
def url(readiness: Readiness) -> Iterator[str]:
    metrics = Metrics(CollectorRegistry())
    metrics.committed_lsn.set(17)
    (port,) = free_ports(1)
    with health_server("127.0.0.1", port, metrics.registry, readiness):
        yield f"http://127.0.0.1:{port}"


def test_it_is_ready_once_there_is_no_reason_against_it(url: str, readiness: Readiness) -> None:
    before = get(f"{url}/readyz")
    readiness.reason = None

    assert before == (503, "starting\n")
    assert get(f"{url}/readyz") == (200, "ready\n")


def test_it_is_alive_before_it_is_ready(url: str) -> None:
    assert get(f"{url}/healthz") == (200, "alive\n")


def test_it_serves_the_metrics(url: str) -> None:
    status, text = get(f"{url}/metrics")

    assert status == 200
    assert "cdc_simulator_committed_lsn 17.0" in text


def test_other_paths_are_not_found(url: str) -> None:
    assert get(f"{url}/else")[0] == 404


def test_a_port_that_is_taken_is_named(url: str) -> None:
    port = int(url.rsplit(":", 1)[1])
    with (
        pytest.raises(PortInUseError, match=rf"cannot listen on 127.0.0.1:{port} .*CDC_SIMULATOR_METRICS_PORT"),
        health_server("127.0.0.1", port, CollectorRegistry(), Readiness("")),
    ):
        pass
