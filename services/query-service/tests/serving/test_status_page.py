"""Probes and metrics over HTTP."""

from collections.abc import Iterator
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest
from prometheus_client import CollectorRegistry, Counter

from local_stack.ports import free_ports
from query_service.errors import PortInUseError
from query_service.serving.status_page import StatusPage

Reasons = dict[str, str | None]


@pytest.fixture
def reasons() -> Reasons:
    return {"sick": None, "unready": "catching up"}


@pytest.fixture
def url(reasons: Reasons) -> Iterator[str]:
    registry = CollectorRegistry()
    Counter("query_service_tests", "Tests.", registry=registry).inc()
    port = free_ports(1)[0]
    page = StatusPage("127.0.0.1", port, registry, lambda: reasons["sick"], lambda: reasons["unready"])
    page.start()
    yield f"http://127.0.0.1:{port}"
    page.stop()


def test_it_is_ready_when_there_is_no_reason_against(url: str, reasons: Reasons) -> None:
    with pytest.raises(HTTPError, match="503") as refused:
        urlopen(f"{url}/readyz")
    with refused.value:
        assert refused.value.read() == b"catching up\n"

    reasons["unready"] = None

    with urlopen(f"{url}/readyz") as answer:
        assert answer.read() == b"ok\n"


def test_it_is_alive_although_it_is_not_ready(url: str) -> None:
    with urlopen(f"{url}/healthz") as answer:
        assert answer.status == 200


def test_it_shows_the_metrics(url: str) -> None:
    with urlopen(f"{url}/metrics") as answer:
        assert b"query_service_tests_total 1.0" in answer.read()


def test_other_paths_are_not_found(url: str) -> None:
    with pytest.raises(HTTPError, match="404") as refused:
        urlopen(f"{url}/")
    refused.value.close()


def test_a_port_that_is_taken_is_named(url: str) -> None:
    port = int(url.rpartition(":")[2])

    with pytest.raises(PortInUseError, match=f"QUERY_SERVICE_METRICS_PORT={port}: .* in use"):
        StatusPage("127.0.0.1", port, CollectorRegistry(), lambda: None, lambda: None).start()
