"""What sessions stand in: what all of them share, and what feeds one."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from ws_edge.access.tickets import Tickets
from ws_edge.dialects.frames import BeginRequest
from ws_edge.hub.hub import Hub
from ws_edge.metrics import Metrics
from ws_edge.states import RangeKey
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

    def interval(self, asked_ms: int | None) -> float:
        """The interval that is granted, in seconds."""
        wanted = self.default_interval_ms if asked_ms is None else asked_ms
        if wanted == 0:
            return 0.0
        return min(max(wanted, self.min_interval_ms), self.max_interval_ms) / 1000

    def in_force(self, key: RangeKey) -> RangeKey:
        """The range with the limit that is granted, which frames name."""
        return key._replace(limit=min(key.limit or self.default_members, self.max_members))


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What all sessions of an edge share."""

    hub: Hub
    stores: Stores
    limits: Limits
    metrics: Metrics
    tickets: Tickets
    clock: Callable[[], float]
    """Monotonic seconds."""
    calendar: Callable[[], float]
    """Seconds since 1970."""


class Feed(Protocol):
    """Where subscriptions come from besides the client; a channel's. It must neither block nor raise."""

    def begin(self, request: BeginRequest) -> None:
        """The client is ready for them."""

    def close(self) -> None:
        """The session has ended. It may be called again."""
