"""The names of all metrics of the edge, and the cheap counters of its hot path.

ws_edge_sockets                   open sockets
ws_edge_sockets_opened_total      sockets opened since the start
ws_edge_sockets_closed_total      sockets closed, by reason:
                                  client         by its client
                                  lost           the connection went away without a close frame
                                  stalled        reset: its client has read nothing for the stall time-out
                                  no_pong        1011, its client did not answer a ping
                                  too_large      1009, a frame was larger than it may be
                                  protocol       its client broke the protocol in another way
                                  restart        1012, the edge is being stopped
                                  expired        4401, its credential was not renewed
                                  revoked        4403, its consumer's access was ended
                                  channel_ended  4404, its channel has expired or was deleted
                                  slow           4408, more waited for its client than may
                                  flood          4429, its client sent far more frames than it may
ws_edge_sockets_refused_total     handshakes refused, by the code that clients were told; busy is told apart into
                                  draining, full (as many sockets as there may be) and pace (too many at a time)
ws_edge_subscriptions             subscriptions of all sockets, and one for each consumer and channel that is watched
ws_edge_unique_keys               keys and ranges that are watched: what is read, however many watch
ws_edge_poll_seconds              one batch of lookups, by store
ws_edge_polled_keys_total         keys and ranges asked for
ws_edge_changed_keys_total        keys and ranges of which something newer came back
ws_edge_failed_keys_total         keys and ranges that could not be looked up
ws_edge_frames_sent_total         frames handed to sockets
ws_edge_skipped_total             versions replaced by newer ones before a slow client took them
ws_edge_age_seconds               from the commit at the source to the frame handed to the socket; snapshots excluded
ws_edge_errors_total              failed requests on sockets, by the code that they were told
ws_edge_query_available           1 while the query service answers
"""

from bisect import bisect_left
from collections.abc import Iterator

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily
from prometheus_client.registry import Collector

from ws_edge.closes import REASONS

AGE_BUCKETS = (0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.25, 0.35, 0.5, 0.75, 1.0, 1.5, 2.5, 5.0, 10.0, 60.0)


class FrameTally(Collector):
    """Counts frames without the locks of ordinary metrics, which would cost as much as the frames themselves."""

    def __init__(self) -> None:
        self.sent = 0
        self.skipped = 0
        self._ages = [0] * (len(AGE_BUCKETS) + 1)
        self._age_sum = 0.0

    def aged(self, seconds: float) -> None:
        """Counts the age of one change."""
        self._ages[bisect_left(AGE_BUCKETS, seconds)] += 1
        self._age_sum += seconds

    def age_counts(self) -> list[int]:
        """How many changes were as old as each of AGE_BUCKETS, or less but older than the one before; then the rest."""
        return list(self._ages)

    def collect(self) -> Iterator[CounterMetricFamily | HistogramMetricFamily]:
        """The metrics as Prometheus wants them."""
        yield CounterMetricFamily("ws_edge_frames_sent", "Frames handed to sockets.", value=self.sent)
        yield CounterMetricFamily("ws_edge_skipped", "Versions replaced before a slow client took them.", self.skipped)
        total, buckets = 0, []
        for bound, count in zip((*AGE_BUCKETS, "+Inf"), self._ages, strict=True):
            total += count
            buckets.append((str(bound), float(total)))
        yield HistogramMetricFamily(
            "ws_edge_age_seconds", "From the commit to the frame handed to the socket.", buckets, self._age_sum
        )


class Metrics:
    """The metrics of one edge, in a registry of its own."""

    def __init__(self) -> None:
        registry = self.registry = CollectorRegistry()
        self.frames = FrameTally()
        registry.register(self.frames)
        self.sockets = Gauge("ws_edge_sockets", "Open sockets.", registry=registry)
        self.sockets_opened = Counter("ws_edge_sockets_opened", "Sockets opened since the start.", registry=registry)
        self.sockets_closed = Counter("ws_edge_sockets_closed", "Sockets closed.", ["reason"], registry=registry)
        for reason in REASONS:
            self.sockets_closed.labels(reason)  # a rate needs the 0 before the first
        self.sockets_refused = Counter("ws_edge_sockets_refused", "Handshakes refused.", ["reason"], registry=registry)
        self.subscriptions = Gauge("ws_edge_subscriptions", "Subscriptions of all sockets.", registry=registry)
        self.unique_keys = Gauge("ws_edge_unique_keys", "Keys that are watched.", registry=registry)
        self.poll_seconds = Histogram("ws_edge_poll_seconds", "One batch of lookups.", ["store"], registry=registry)
        self.polled_keys = Counter("ws_edge_polled_keys", "Keys asked for.", registry=registry)
        self.changed_keys = Counter("ws_edge_changed_keys", "Keys with something newer.", registry=registry)
        self.failed_keys = Counter("ws_edge_failed_keys", "Keys that could not be looked up.", registry=registry)
        self.errors = Counter("ws_edge_errors", "Failed requests on sockets.", ["code"], registry=registry)
        self.query_available = Gauge("ws_edge_query_available", "1 while the query service answers.", registry=registry)
