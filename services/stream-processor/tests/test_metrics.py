"""Metrics and readiness, as the health server shows them."""

from statecast_service.health import HealthServer
from stream_processor.metrics import Metrics, Readiness
from stream_processor.settings import Settings
from testkit.service_process import StatusClient


def test_it_is_alive_before_it_is_ready(metrics: Metrics) -> None:
    readiness = Readiness(metrics)
    settings = Settings(metrics_port=0)
    with HealthServer(settings, metrics.registry, readiness=lambda: readiness.reason) as health:
        status = StatusClient(f"http://127.0.0.1:{health.port}")
        assert status.get("/healthz") == (200, "ok\n")
        assert status.get("/readyz") == (503, "starting\n")
        assert "stream_processor_ready 0.0" in status.get("/metrics")[1]
        readiness.report(None)
        assert status.get("/readyz") == (200, "ok\n")
        assert "stream_processor_ready 1.0" in status.get("/metrics")[1]
        assert status.get("/other")[0] == 404
