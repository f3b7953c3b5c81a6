"""Every metric of the query service; all names begin with `query_service_`."""

from bisect import bisect_left
from collections import Counter as Counts
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import accumulate

from prometheus_client import CollectorRegistry, Counter, Gauge
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector
from typing_extensions import override

from query_service.errors import QueryServiceError
from statecast_service.health import register_build

_SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)
_BOUNDS = (*map(str, _SECONDS), "+Inf")


Measured = tuple[str, int, tuple[float, ...]]
"""Store, partition, and the values of its gauges in their order."""


class MethodCalls:
    """The calls of one method, in plain numbers, so that counting one costs next to nothing; for the event loop only.

    `in_flight` has those that wait; a call that is answered at once is counted by `ended` alone.
    """

    __slots__ = ("_seconds", "_times", "in_flight", "outcomes")

    def __init__(self) -> None:
        self.in_flight = 0
        self.outcomes = Counts[str]()
        self._times = [0] * len(_BOUNDS)
        self._seconds = 0.0

    def ended(self, outcome: str, seconds: float) -> None:
        self.outcomes[outcome] += 1
        self._times[bisect_left(_SECONDS, seconds)] += 1
        self._seconds += seconds

    def histogram(self) -> tuple[list[tuple[str, float]], float]:
        """Returns how many calls took at most so long, for each bound, and the sum of their seconds."""
        return list(zip(_BOUNDS, accumulate(self._times), strict=True)), self._seconds


def outcome_of(error: BaseException) -> str:
    """Returns how calls that end with an error are counted."""
    return type(error).__name__ if isinstance(error, QueryServiceError) else "interrupted"


class Calls(Collector):
    """The public calls by their method. The event loop counts them; they become samples when they are collected."""

    def __init__(self) -> None:
        self._methods = defaultdict[str, MethodCalls](MethodCalls)

    def of(self, method: str) -> MethodCalls:
        return self._methods[method]

    @override
    def collect(self) -> Iterator[Metric]:
        """Yields the metrics, in any thread: a count made meanwhile may be in one of them and not yet in another."""
        seconds = HistogramMetricFamily(
            "query_service_call_seconds",
            "Seconds of a public call from its first byte on; a long poll counts its waiting.",
            labels=("method",),
        )
        ended = "Public calls by outcome: ok, the name of the error, or interrupted (cancelled, or a defect)."
        calls = CounterMetricFamily("query_service_calls", ended, labels=("method", "outcome"))
        in_work = "Public calls in work, long polls among them: what MAX_CONCURRENT_CALLS bounds."
        in_flight = GaugeMetricFamily("query_service_calls_in_flight", in_work, labels=("method",))
        for method, counted in sorted(self._methods.items()):
            seconds.add_metric((method,), *counted.histogram())
            in_flight.add_metric((method,), counted.in_flight)
            for outcome, number in sorted(counted.outcomes.items()):
                calls.add_metric((method, outcome), number)
        yield from (seconds, calls, in_flight)


class PartitionGauges(Collector):
    """The gauges of the partitions. They are measured when they are collected: there may be thousands of samples."""

    _GAUGES = (
        ("query_service_lag_records", "Records known and not applied."),
        ("query_service_lag_seconds", "Seconds since all was applied."),
        ("query_service_applied_offset", "Offset of the last record applied."),
        ("query_service_serving", "1 when the partition is served."),
    )

    def __init__(self) -> None:
        self._measured: Callable[[], Iterable[Measured]] = tuple

    def set_function(self, measured: Callable[[], Iterable[Measured]]) -> None:
        """Takes the function that measures all partitions, in any thread."""
        self._measured = measured

    @override
    def collect(self) -> Iterator[Metric]:
        families = [GaugeMetricFamily(*gauge, labels=("store", "partition")) for gauge in self._GAUGES]
        for store, partition, values in self._measured():
            for family, value in zip(families, values, strict=True):
                family.add_metric((store, str(partition)), value)
        yield from families


class Metrics:
    """The metrics of one instance, in a registry of its own."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.registry = registry
        register_build(registry, "query-service")
        counter = partial(Counter, registry=registry)
        gauge = partial(Gauge, registry=registry)
        self.calls = Calls()
        registry.register(self.calls)
        forwards = "Calls forwarded to a peer, by what it did: answered, not_served, unreachable, refused."
        self.forwards = counter("query_service_forwards", forwards, ("outcome",))
        hedges = "Slow forwards: the next replica was first (won) or not (lost), or HEDGE_SHARE was used up (refused)."
        self.hedges = counter("query_service_hedges", hedges, ("outcome",))
        in_flight = "Requests in work and responses not yet sent: what MAX_IN_FLIGHT_MB bounds."
        self.in_flight_bytes = gauge("query_service_in_flight_bytes", in_flight)
        self.batch_keys = counter("query_service_batch_keys", "Keys and ranges of batches.")
        self.batch_results = counter("query_service_batch_results", "Keys and ranges of batches that had news.")
        partition = ("store", "partition")
        records = "Records read, by outcome: applied, older (fenced off), refused (for its key, value or tombstone)."
        self.records = counter("query_service_records", records, ("store", "outcome", "reason"))
        misplaced = (
            "Records whose key belongs into another partition; they are stored, and lookups of the key are refused."
        )
        self.misplaced_records = counter("query_service_misplaced_records", misplaced, ("store",))
        keys = "Keys known to stand in another partition than theirs, here or at a peer: of a partition 100 at most."
        self.misplaced_keys = gauge("query_service_misplaced_keys", keys, ("store",))
        self.partitions = PartitionGauges()
        registry.register(self.partitions)
        restored = "Records read before a partition was served."
        self.restore_records = counter("query_service_restore_records", restored, ("store",))
        self.restore_left = gauge("query_service_restore_left", "Records left to restore.", partition)
        self.restore_seconds = gauge("query_service_restore_seconds", "Seconds that the last restore took.", partition)
        set_aside = "Data directories that could not be used and were set aside; the log says why."
        self.set_aside = counter("query_service_set_aside", set_aside)
        disk = (
            "Bytes on disk by kind: held, released (moved away, deleted in time), set-aside, unfinished, checkpoints."
        )
        self.disk_bytes = gauge("query_service_disk_bytes", disk, ("kind",))
        seeds = "Partitions that were not on disk, by where from: peer, topic (no peer serves them, or seeding failed)."
        self.seeds = counter("query_service_seeds", seeds, ("store", "outcome"))
        seed_bytes = "Bytes of partitions that were taken from peers (taken), and that peers and backups took (given)."
        self.seed_bytes = counter("query_service_seed_bytes", seed_bytes, ("direction",))
        self.checkpoints = gauge("query_service_checkpoints", "Checkpoints that are kept for peers and backups.")
        stores_file = "0 while the stores file is wrong, or asks for what only a restart can do; the log says what."
        self.stores_file = gauge("query_service_stores_file_ok", stores_file)
        self.stores_file.set(1)
        differ = "Peers with other settings than this instance, where all must have the same; the log names them."
        self.settings_differ = gauge("query_service_settings_differ", differ)
        self.members = gauge("query_service_members", "Instances in the group, as this one sees it.")
