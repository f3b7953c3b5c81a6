"""Instances that hold partitions by another number of replicas are told once."""

from structlog.testing import capture_logs

from query_service.cluster.replicas_watch import ReplicasWatch
from query_service.metrics import Metrics


def test_peers_that_differ_are_named_when_they_are_others_than_before(metrics: Metrics) -> None:
    peers = {"query-2": 2, "query-3": 0}
    watch = ReplicasWatch(2, lambda: dict(peers), metrics)
    with capture_logs() as logs:
        watch.update()
        assert not logs
        peers["query-3"] = 1
        watch.update()
        watch.update()

    assert [(each["own"], each["others"]) for each in logs] == [(2, {"query-3": 1})]
    assert metrics.registry.get_sample_value("query_service_replicas_differ") == 1

    peers["query-3"] = 2
    watch.update()
    assert metrics.registry.get_sample_value("query_service_replicas_differ") == 0
