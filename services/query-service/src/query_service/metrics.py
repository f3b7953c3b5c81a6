"""Every metric of the query service; all names begin with `query_service_`."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from time import perf_counter

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from query_service.errors import QueryServiceError


class Metrics:
    """The metrics of one instance, in a registry of its own."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.registry = registry
        counter = partial(Counter, registry=registry)
        gauge = partial(Gauge, registry=registry)
        self.call_seconds = Histogram(
            "query_service_call_seconds",
            "Seconds of a public call from its first byte on; a long poll counts its waiting.",
            ("method",),
            registry=registry,
            buckets=(0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5),
        )
        calls = "Public calls by outcome: ok, the name of the error, or interrupted (cancelled, or a defect)."
        self.calls = counter("query_service_calls", calls, ("method", "outcome"))
        calls_in_flight = "Public calls in work, long polls among them: what MAX_CONCURRENT_CALLS bounds."
        self.calls_in_flight = gauge("query_service_calls_in_flight", calls_in_flight, ("method",))
        forwards = "Calls forwarded to a peer, by what it did: answered, not_served, unreachable, refused."
        self.forwards = counter("query_service_forwards", forwards, ("outcome",))
        hedges = "Slow forwards: the next replica was first (won) or not (lost), or HEDGE_SHARE was used up (refused)."
        self.hedges = counter("query_service_hedges", hedges, ("outcome",))
        in_flight = "Requests in work and responses not yet sent: what MAX_IN_FLIGHT_MB bounds."
        self.in_flight_bytes = gauge("query_service_in_flight_bytes", in_flight)
        self.batch_keys = counter("query_service_batch_keys", "Keys and ranges of batches.")
        self.batch_results = counter("query_service_batch_results", "Keys and ranges of batches that had news.")
        partition = ("store", "partition")
        records = "Records read, by outcome: applied, stale (fenced off), poison (skipped)."
        self.records = counter("query_service_records", records, ("store", "outcome"))
        misplaced = "Keys of plain topics in another partition than theirs: their producers have another partitioner."
        self.misplaced_keys = counter("query_service_misplaced_keys", misplaced, ("store",))
        self.lag_records = gauge("query_service_lag_records", "Records known and not applied.", partition)
        self.lag_seconds = gauge("query_service_lag_seconds", "Seconds since all was applied.", partition)
        self.applied_offset = gauge("query_service_applied_offset", "Offset of the last record applied.", partition)
        self.serving = gauge("query_service_serving", "1 when the partition is served.", partition)
        restored = "Records read before a partition was served."
        self.restore_records = counter("query_service_restore_records", restored, ("store",))
        self.restore_left = gauge("query_service_restore_left", "Records left to restore.", partition)
        self.restore_seconds = gauge("query_service_restore_seconds", "Seconds that the last restore took.", partition)
        set_aside = "Data directories that could not be used and were set aside; the log says why."
        self.set_aside = counter("query_service_set_aside", set_aside)
        seeds = "Partitions that were not on disk, by where from: peer, topic (no peer serves them, or seeding failed)."
        self.seeds = counter("query_service_seeds", seeds, ("store", "outcome"))
        seed_bytes = "Bytes of partitions that were taken from peers (taken), and that peers and backups took (given)."
        self.seed_bytes = counter("query_service_seed_bytes", seed_bytes, ("direction",))
        self.checkpoints = gauge("query_service_checkpoints", "Checkpoints that are kept for peers and backups.")
        self.members = gauge("query_service_members", "Instances in the group, as this one sees it.")

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
