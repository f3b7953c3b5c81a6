"""All that the sessions of an edge share, and the limits that it grants."""

from collections.abc import Callable
from dataclasses import dataclass

from ws_edge.auth.gateway import Tickets
from ws_edge.metrics import Metrics
from ws_edge.model.states import AnyKey, RangeKey
from ws_edge.model.stores import Stores, find
from ws_edge.settings import Settings
from ws_edge.watches.hub import Hub


@dataclass(frozen=True, slots=True)
class SessionContext:
    """All that the sessions of an edge share, and the limits of each of them."""

    hub: Hub
    stores: Stores
    settings: Settings
    metrics: Metrics
    tickets: Tickets
    clock: Callable[[], float]
    wall_clock: Callable[[], float]

    def interval(self, interval_ms: int | None, store: str) -> float:
        """Returns the interval that is granted, in seconds; 0 asks for no time between two frames.

        Without one it is that of the store, or else of the settings.
        """
        settings, wanted = self.settings, interval_ms
        if wanted is None:
            wanted = find(self.stores, store).interval_ms or settings.default_interval_ms
        return min(max(wanted, settings.min_interval_ms), settings.max_interval_ms) / 1000 if wanted else 0.0

    def granted(self, key: AnyKey) -> AnyKey:
        """Returns the key as it is watched: a range gets the limit that is granted."""
        if not isinstance(key, RangeKey):
            return key
        return key._replace(limit=min(key.limit or self.settings.page_size, self.settings.max_members))
