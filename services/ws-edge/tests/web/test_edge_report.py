"""An edge's report says what its metrics say."""

from ws_edge.metrics import AGE_BUCKETS, Metrics
from ws_edge.testing.edge import Clock
from ws_edge.web.edge_report import EdgeReport


def test_the_report_has_the_counts_of_the_metrics() -> None:
    metrics, clock = Metrics(), Clock()
    report = EdgeReport("edge-1", metrics, lambda: "it is being stopped", clock)
    clock.now += 90
    metrics.sockets.set(3)
    metrics.frames.sent = 12
    metrics.polled_keys.inc(7)
    document = report.document()

    assert (document["instance"], document["uptime_s"], document["not_ready"]) == ("edge-1", 90, "it is being stopped")
    assert document["sockets"] == 3
    assert (document["totals"]["frames_sent"], document["totals"]["polled_keys"]) == (12, 7)


def test_each_change_is_counted_once_by_its_age() -> None:
    metrics = Metrics()
    report = EdgeReport("edge-1", metrics, lambda: None, Clock())
    for seconds in (0.01, 0.02, 0.03, 1000.0):
        metrics.frames.aged(seconds)
    ages = report.document()["ages"]

    assert ages["bounds_s"] == list(AGE_BUCKETS)
    assert ages["counts"][:3] == [1, 1, 1]
    assert ages["counts"][-1] == 1
    assert sum(ages["counts"]) == 4
