"""All that the sessions of an edge share, and the limits that it grants."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from ws_edge.auth.tickets import Tickets
from ws_edge.metrics import Metrics
from ws_edge.model.questions import Question
from ws_edge.model.stores import Store, Stores
from ws_edge.settings import MAX_INTERVAL_MS, Settings
from ws_edge.watches.hub import Hub

MAX_LIMIT = 1000
"""Rows of a watched range; larger limits get this."""


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

    def interval(self, interval_ms: int | None, store: Store) -> float:
        """Returns the interval that is granted, in seconds; 0 asks for no time between two frames.

        Without one it is that of the store, or else of the settings.
        """
        settings, wanted = self.settings, interval_ms
        if wanted is None:
            wanted = store.interval_ms or settings.default_interval_ms
        return min(max(wanted, settings.min_interval_ms), MAX_INTERVAL_MS) / 1000 if wanted else 0.0

    def granted(self, question: Question) -> Question:
        """Returns the question as it is watched: a range gets the limit that is granted."""
        limit = min(question.limit or self.settings.page_size, MAX_LIMIT)
        return question if question.limit == limit else replace(question, limit=limit)
