"""What is written, as metrics and as numbers for people."""

import pytest
from confluent_kafka import KafkaException
from prometheus_client import CollectorRegistry

from stream_processor.metrics import Metrics
from stream_processor.operation.output import RECENT, Output
from stream_processor.testing.fakes import FakeTail


@pytest.fixture
def metrics() -> Metrics:
    return Metrics(CollectorRegistry())


def value(metrics: Metrics, name: str, query: str, **labels: str) -> float | None:
    return metrics.registry.get_sample_value(f"stream_processor_{name}", {"query": query, **labels})


def test_records_are_counted_and_lags_of_keyed_topics_observed(metrics: Metrics) -> None:
    tail = FakeTail(({"keyed": 3, "plain": 2}, {"keyed": [0.02, 0.2], "plain": [9.0]}))
    output = Output(tail, {"keyed": "q", "plain": "r"}, ["keyed"], metrics)

    output.look()

    assert (value(metrics, "output_rows_total", "q"), value(metrics, "output_rows_total", "r")) == (3, 2)
    assert value(metrics, "lag_seconds_bucket", "q", le="0.025") == 1
    assert value(metrics, "lag_seconds_count", "q") == 2
    assert value(metrics, "lag_seconds_count", "r") is None
    assert (output.rate, output.quantile(0), output.quantile(1)) == (5, 0.02, 0.2)


def test_only_recent_looks_count_for_people(metrics: Metrics) -> None:
    tail = FakeTail(({"keyed": 100}, {"keyed": [60.0]}))
    output = Output(tail, {"keyed": "q"}, ["keyed"], metrics)
    output.look()
    tail.seen = ({"keyed": 1}, {})
    for _ in range(RECENT):
        output.look()

    assert (output.rate, output.quantile(0.5)) == (1, None)


def test_a_broker_that_is_away_changes_nothing(metrics: Metrics) -> None:
    output = Output(FakeTail(KafkaException("away")), {"keyed": "q"}, ["keyed"], metrics)

    output.look()

    assert value(metrics, "output_rows_total", "q") is None
