"""What all sessions of an edge share, and what one of them may ask for."""

from collections.abc import Callable
from dataclasses import dataclass

from ws_edge.auth.gateway import Tickets
from ws_edge.hub.hub import Hub
from ws_edge.metrics import Metrics
from ws_edge.states import AnyKey, RangeKey
from ws_edge.stores import Stores


@dataclass(frozen=True, slots=True)
class Limits:
    """What one socket may ask for; intervals in milliseconds, of which 0 asks for no time between two frames."""

    default_interval_ms: int
    min_interval_ms: int
    max_interval_ms: int
    max_subscriptions: int
    max_replies: int
    max_outbox_bytes: int
    default_members: int = 100
    max_members: int = 1000
    max_ranges: int = 20

    def interval(self, interval_ms: int | None) -> float:
        """The interval that is granted, in seconds."""
        wanted = self.default_interval_ms if interval_ms is None else interval_ms
        if wanted == 0:
            return 0.0
        return min(max(wanted, self.min_interval_ms), self.max_interval_ms) / 1000

    def granted(self, key: AnyKey) -> AnyKey:
        """What is watched for the key, and named in frames: a range gets the limit that is granted."""
        if not isinstance(key, RangeKey):
            return key
        return key._replace(limit=min(key.limit or self.default_members, self.max_members))


@dataclass(frozen=True, slots=True)
class SessionContext:
    """What all sessions of an edge share."""

    hub: Hub
    stores: Stores
    limits: Limits
    metrics: Metrics
    tickets: Tickets
    clock: Callable[[], float]
    """Monotonic seconds."""
    wall_clock: Callable[[], float]
    """Seconds since 1970."""
