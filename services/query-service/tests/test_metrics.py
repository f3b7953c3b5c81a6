"""Metrics are named in one place."""

from prometheus_client import generate_latest

from query_service.errors import NotServedError
from query_service.metrics import Metrics, outcome_of


def test_every_name_begins_with_the_service(metrics: Metrics) -> None:
    names = [family.name for family in metrics.registry.collect()]

    assert names
    assert all(name.startswith("query_service_") for name in names)
    assert b"query_service_call_seconds" in generate_latest(metrics.registry)


def test_a_call_is_counted_by_how_it_ended(metrics: Metrics) -> None:
    for failure in (None, NotServedError("still reading"), KeyboardInterrupt()):
        metrics.calls.of("GetState").ended("ok" if failure is None else outcome_of(failure), 0.1)

    counted = {
        outcome: metrics.registry.get_sample_value(
            "query_service_calls_total", {"method": "GetState", "outcome": outcome}
        )
        for outcome in ("ok", "NotServedError", "interrupted")
    }
    assert counted == {"ok": 1, "NotServedError": 1, "interrupted": 1}
