"""What all sessions of an edge share."""

from collections.abc import Callable
from dataclasses import dataclass

from ws_edge.hub import Hub
from ws_edge.metrics import Metrics
from ws_edge.stores import Stores
from ws_edge.tickets import Tickets


@dataclass(frozen=True, slots=True)
class Limits:
    """What one socket may ask for; intervals in milliseconds, of which 0 asks for no time between two frames."""

    default_interval_ms: int
    min_interval_ms: int
    max_interval_ms: int
    max_subscriptions: int
    max_replies: int


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
