"""Every metric of the query service; all names begin with `query_service_`."""

from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from query_service.errors import QueryServiceError

_CALL_SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5)


class Metrics:
    """The metrics of one instance, in a registry of its own."""

    def __init__(self, registry: CollectorRegistry) -> None:
        """Makes every metric; nothing is registered globally."""
        self.registry = registry
        # How long public calls take, from the first byte of the request; a long poll counts its waiting.
        self.call_seconds = Histogram(
            "query_service_call_seconds",
            "Seconds of a public call.",
            ["method"],
            registry=registry,
            buckets=_CALL_SECONDS,
        )
        # Public calls by how they ended: ok, the name of the error, or interrupted (cancelled, or a defect).
        self.calls = Counter("query_service_calls", "Public calls.", ["method", "outcome"], registry=registry)
        # Public calls in work, held long polls among them: what MAX_CONCURRENT_CALLS bounds.
        self.calls_in_flight = Gauge(
            "query_service_calls_in_flight", "Public calls in work.", ["method"], registry=registry
        )
        # Calls passed on to peers, by what the peer did: answered, not_served, unreachable, refused.
        self.forwards = Counter("query_service_forwards", "Calls passed on to a peer.", ["outcome"], registry=registry)
        # Forwards that were slow: the second replica answered first (won), or the first one did after all (lost), or
        # no second one was asked yet, because the share of hedged calls was used up (refused).
        self.hedges = Counter("query_service_hedges", "Slow forwards.", ["outcome"], registry=registry)
        # Requests in work, and answers that have not been sent: what MAX_IN_FLIGHT_MB bounds.
        self.in_flight_bytes = Gauge("query_service_in_flight_bytes", "Bytes held by calls.", registry=registry)
        # Keys of batches, and how many of them had something newer.
        self.batch_keys = Counter("query_service_batch_keys", "Keys asked in batches.", registry=registry)
        self.batch_results = Counter(
            "query_service_batch_results", "Keys of batches that got a result.", registry=registry
        )
        # What became of the records of the keyed topics: applied, stale (fenced off), poison (skipped).
        self.records = Counter("query_service_records", "Records read.", ["store", "outcome"], registry=registry)
        # Keys of plain topics that stand in another partition than theirs: their producers have another partitioner.
        self.misplaced_keys = Counter(
            "query_service_misplaced_keys", "Keys found in another partition.", ["store"], registry=registry
        )
        # How far each partition that this instance holds is.
        place = ["store", "partition"]
        self.lag_records = Gauge("query_service_lag_records", "Records known, not applied.", place, registry=registry)
        self.lag_seconds = Gauge("query_service_lag_seconds", "Since all was applied.", place, registry=registry)
        self.applied_offset = Gauge("query_service_applied_offset", "Last offset applied.", place, registry=registry)
        self.serving = Gauge("query_service_serving", "1 when the partition is served.", place, registry=registry)
        # Restores: reading a partition until it is served, from an empty disk or from where an instance stopped.
        self.restore_records = Counter(
            "query_service_restore_records", "Records read before serving.", ["store"], registry=registry
        )
        self.restore_left = Gauge("query_service_restore_left", "Records left to restore.", place, registry=registry)
        self.restore_seconds = Gauge(
            "query_service_restore_seconds", "How long the last restore took.", place, registry=registry
        )
        # Directories that could not be used and were set aside; the log says why.
        self.set_aside = Counter("query_service_set_aside", "Directories set aside.", registry=registry)
        # The group as this instance sees it.
        self.members = Gauge("query_service_members", "Instances in the group.", registry=registry)

    @contextmanager
    def measured(self, method: str) -> Iterator[None]:
        """Counts the public call within the block, while it lasts and when it has ended, and how long it takes."""
        began = perf_counter()
        outcome = "interrupted"
        in_flight = self.calls_in_flight.labels(method)
        in_flight.inc()
        try:
            yield
            outcome = "ok"
        except QueryServiceError as error:
            outcome = type(error).__name__
            raise
        finally:
            in_flight.dec()
            self.calls.labels(method, outcome).inc()
            self.call_seconds.labels(method).observe(perf_counter() - began)
