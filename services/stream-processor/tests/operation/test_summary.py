"""The line for people."""

import pytest
from prometheus_client import CollectorRegistry

from stream_processor.metrics import Metrics
from stream_processor.operation.output import Output
from stream_processor.operation.summary import summary
from stream_processor.testing.fakes import FakeTail


@pytest.fixture
def metrics() -> Metrics:
    return Metrics(CollectorRegistry())


def test_it_sums_over_all_queries(metrics: Metrics) -> None:
    output = Output(FakeTail(({"keyed": 1200}, {"keyed": [0.045, 0.12]})), {"keyed": "q"}, ["keyed"], metrics)
    output.look()
    for query, told in (("q", 100.0), ("r", 104.0)):
        metrics.input_rate.labels(query).set(500)
        metrics.state_rows.labels(query).set(1000)
        metrics.last_checkpoint.labels(query).set(told)
    metrics.dead_letters.labels("t").set(2)

    line = summary(metrics.registry, output, None, now=112.0)

    assert line == (
        "in 1,000/s · out 1,200/s · lag p50 45 ms, p99 120 ms · state 2,000 rows · checkpoint 12 s ago · dead letters 2"
    )


def test_before_anything_is_known_it_says_so(metrics: Metrics) -> None:
    output = Output(FakeTail(({}, {})), {}, [], metrics)

    assert "lag p50 unknown" in summary(metrics.registry, output, None, now=1.0)
    assert "no checkpoint yet" in summary(metrics.registry, output, None, now=1.0)
    assert summary(metrics.registry, output, "starting Spark", now=1.0) == "starting Spark"
