"""Probes and metrics over HTTP."""

import socket
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from prometheus_client import CollectorRegistry, Counter

from statecast_service import health
from statecast_service.errors import PortInUseError
from statecast_service.health import HealthServer, health_answer

if TYPE_CHECKING:
    from conftest import Settings

Reasons = dict[str, str | None]


def get(url: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


@pytest.fixture
def reasons() -> Reasons:
    return {"liveness": None, "readiness": "catching up"}


@pytest.fixture
def url(settings_class: "type[Settings]", reasons: Reasons) -> Iterator[str]:
    registry = CollectorRegistry()
    Counter("demo_tests", "Tests.", registry=registry).inc()
    server = HealthServer(
        settings_class(), registry, readiness=lambda: reasons["readiness"], liveness=lambda: reasons["liveness"]
    )
    with server:
        yield f"http://127.0.0.1:{server.port}"


def test_it_is_ready_once_there_is_no_reason_against_it(url: str, reasons: Reasons) -> None:
    before = get(f"{url}/readyz")
    reasons["readiness"] = None

    assert before == (503, "catching up\n")
    assert get(f"{url}/readyz") == (200, "ok\n")


def test_it_is_alive_although_it_is_not_ready(url: str, reasons: Reasons) -> None:
    alive = get(f"{url}/healthz?from=probe")
    reasons["liveness"] = "the thread has ended"

    assert alive == (200, "ok\n")
    assert get(f"{url}/healthz") == (503, "the thread has ended\n")


def test_it_serves_the_metrics(url: str) -> None:
    status, text = get(f"{url}/metrics")

    assert status == 200
    assert "demo_tests_total 1.0" in text


def test_other_paths_are_not_found(url: str) -> None:
    assert get(f"{url}/else") == (404, "there is /metrics, /healthz, /readyz\n")


def test_a_silent_client_does_not_keep_others_from_an_answer(url: str) -> None:
    port = int(url.rpartition(":")[2])
    with socket.create_connection(("127.0.0.1", port)):
        assert get(f"{url}/healthz")[0] == 200


def test_a_silent_client_is_cut_off(settings_class: "type[Settings]", monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "MAX_SILENCE_S", 0.1)
    server = HealthServer(settings_class(), CollectorRegistry(), readiness=lambda: None)

    with server, socket.create_connection(("127.0.0.1", server.port), timeout=10) as silent:
        assert silent.recv(1) == b""


def test_a_port_that_is_taken_is_named_with_its_variables(settings_class: "type[Settings]", url: str) -> None:
    port = int(url.rpartition(":")[2])
    server = HealthServer(settings_class(metrics_port=port), CollectorRegistry(), readiness=lambda: None)

    problem = rf"^cannot listen on 127.0.0.1:{port} of DEMO_METRICS_HOST and DEMO_METRICS_PORT={port}: .* in use; set"
    with pytest.raises(PortInUseError, match=problem):
        server.start()


def test_it_has_no_port_before_it_listens(settings_class: "type[Settings]") -> None:
    server = HealthServer(settings_class(), CollectorRegistry(), readiness=lambda: None)

    with pytest.raises(RuntimeError, match="does not listen"):
        _ = server.port


def test_others_answer_probes_by_the_same_rule() -> None:
    assert health_answer(None)[::2] == (200, b"ok\n")
    assert health_answer("draining")[::2] == (503, b"draining\n")
    assert health_answer(None, ["one is stopped"])[::2] == (200, b"ok\none is stopped\n")
