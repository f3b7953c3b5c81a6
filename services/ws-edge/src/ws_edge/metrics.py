"""The metrics of the edge, and the cheap counters of its hot path. The README lists them all."""

from bisect import bisect_left
from collections.abc import Callable, Iterator
from itertools import accumulate

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily
from prometheus_client.registry import Collector
from typing_extensions import override

from statecast_service.health import register_build
from ws_edge.errors import REASONS

AGE_BUCKETS = (0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.25, 0.35, 0.5, 0.75, 1.0, 1.5, 2.5, 5.0, 10.0, 60.0)


class FrameTally(Collector):
    """Counts frames without the locks of ordinary metrics, which would cost as much as the frames themselves."""

    def __init__(self) -> None:
        self.sent = 0
        self.skipped: Callable[[], int] = int
        """Returns how many versions were replaced before a slow client took them."""
        self.ages = [0] * (len(AGE_BUCKETS) + 1)
        """How many changes fell into each of AGE_BUCKETS, not cumulative; the last number is those above all."""
        self._age_sum = 0.0

    def aged(self, seconds: float) -> None:
        """Counts a change of this age; one from the future, by the clock of its source, counts as new."""
        seconds = max(0.0, seconds)  # a sum that falls looks as if the edge had started anew
        self.ages[bisect_left(AGE_BUCKETS, seconds)] += 1
        self._age_sum += seconds

    @override
    def collect(self) -> Iterator[CounterMetricFamily | HistogramMetricFamily]:
        yield CounterMetricFamily("ws_edge_frames_sent", "Frames handed to sockets.", value=self.sent)
        yield CounterMetricFamily(
            "ws_edge_skipped", "Versions replaced before a slow client took them.", self.skipped()
        )
        bounds = map(str, (*AGE_BUCKETS, "+Inf"))
        buckets = list(zip(bounds, map(float, accumulate(self.ages)), strict=True))
        meaning = "From the commit at the source to the frame handed to the socket; snapshots excluded."
        yield HistogramMetricFamily("ws_edge_age_seconds", meaning, buckets, self._age_sum)


class Metrics:
    """The metrics of one edge, in a registry of its own."""

    def __init__(self) -> None:
        registry = self.registry = CollectorRegistry()
        register_build(registry, "ws-edge")
        self.frames = FrameTally()
        registry.register(self.frames)
        self.sockets = Gauge("ws_edge_sockets", "Open sockets.", registry=registry)
        self.sockets_opened = Counter("ws_edge_sockets_opened", "Sockets opened since the start.", registry=registry)
        meaning = "Sockets closed, by reason; see the close codes."
        self.sockets_closed = Counter("ws_edge_sockets_closed", meaning, ["reason"], registry=registry)
        for reason in REASONS:
            self.sockets_closed.labels(reason)  # a rate needs the 0 before the first close
        meaning = "Handshakes refused, by error code; instead of busy the reason is draining, full or pace."
        self.sockets_refused = Counter("ws_edge_sockets_refused", meaning, ["reason"], registry=registry)
        meaning = "For how long sockets were not read, because their consumer or address had sent more than it may."
        self.throttled_seconds = Counter("ws_edge_throttled_seconds", meaning, registry=registry)
        meaning = "Places that sockets watch, and one for each consumer with a socket, for its revocation."
        self.subscriptions = Gauge("ws_edge_subscriptions", meaning, registry=registry)
        self.unique_keys = Gauge("ws_edge_unique_keys", "Keys and ranges that are watched.", registry=registry)
        self.poll_seconds = Histogram("ws_edge_poll_seconds", "One batch of lookups.", ["store"], registry=registry)
        self.polled_keys = Counter("ws_edge_polled_keys", "Keys and ranges asked for.", registry=registry)
        self.changed_keys = Counter("ws_edge_changed_keys", "Keys and ranges with newer state.", registry=registry)
        self.failed_keys = Counter("ws_edge_failed_keys", "Keys and ranges whose lookup failed.", registry=registry)
        self.errors = Counter("ws_edge_errors", "Failed requests on sockets, by code.", ["code"], registry=registry)
        meaning = "Rows of JSON of which more is hidden than a field: a private path does not lead; the log names it."
        self.hidden_rows = Counter("ws_edge_hidden_rows", meaning, ["store"], registry=registry)
        meaning = "0 while a store, or a whole listing of the query service, cannot be shown; the log says why."
        self.stores_ok = Gauge("ws_edge_stores_ok", meaning, registry=registry)
        self.stores_ok.set(1)
        self.query_available = Gauge("ws_edge_query_available", "1 while the query service answers.", registry=registry)
