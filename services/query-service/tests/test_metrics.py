"""Metrics are named in one place."""

import pytest
from prometheus_client import generate_latest

from query_service.errors import NotServedError
from query_service.metrics import Metrics


def test_every_name_begins_with_the_service(metrics: Metrics) -> None:
    names = [family.name for family in metrics.registry.collect()]

    assert names
    assert all(name.startswith("query_service_") for name in names)
    assert b"query_service_call_seconds" in generate_latest(metrics.registry)


def test_a_call_is_in_flight_until_it_ends(metrics: Metrics) -> None:
    def in_flight() -> float | None:
        return metrics.registry.get_sample_value("query_service_calls_in_flight", {"method": "GetState"})

    with metrics.calls.measured("GetState"):
        within = in_flight()
    with pytest.raises(NotServedError), metrics.calls.measured("GetState"):
        raise NotServedError("still reading")

    assert (within, in_flight()) == (1, 0)


def test_a_call_is_counted_by_how_it_ended(metrics: Metrics) -> None:
    with metrics.calls.measured("GetState"):
        pass
    with pytest.raises(NotServedError), metrics.calls.measured("GetState"):
        raise NotServedError("still reading")
    with pytest.raises(KeyboardInterrupt), metrics.calls.measured("GetState"):
        raise KeyboardInterrupt

    counted = {
        outcome: metrics.registry.get_sample_value(
            "query_service_calls_total", {"method": "GetState", "outcome": outcome}
        )
        for outcome in ("ok", "NotServedError", "interrupted")
    }
    assert counted == {"ok": 1, "NotServedError": 1, "interrupted": 1}
