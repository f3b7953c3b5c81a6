"""The objects that all sessions of an edge share, and the limits that it grants."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from ws_edge.auth.tickets import Tickets
from ws_edge.metrics import Metrics
from ws_edge.model.authorization import Consumer
from ws_edge.model.questions import MAX_LIMIT, Question
from ws_edge.model.stores import FindStore, Store, Stores, find
from ws_edge.settings import MAX_INTERVAL_MS, Settings
from ws_edge.watches.hub import Hub


@dataclass(frozen=True, slots=True)
class SessionContext:
    """The objects that all sessions of an edge share, and the limits of each session."""

    hub: Hub
    stores: Stores
    settings: Settings
    metrics: Metrics
    tickets: Tickets
    clock: Callable[[], float]
    wall_clock: Callable[[], float]

    def finder(self, consumer: Consumer) -> FindStore:
        """Returns the function by which requests of the consumer find stores."""
        return partial(find, self.stores, consumer)

    def interval(self, interval_ms: int | None, store: Store) -> float:
        """Returns the granted interval, in seconds; 0 for no pause between two frames.

        None gives the interval of the store, or else of the settings.
        """
        settings, wanted = self.settings, interval_ms
        if wanted is None:
            wanted = store.interval_ms or settings.default_interval_ms
        return min(max(wanted, settings.min_interval_ms), MAX_INTERVAL_MS) / 1000 if wanted else 0.0

    def rows_counted(self, limit: int, interval: float) -> int:
        """Returns as how many rows a place counts: its limit, and one more for each read a second beyond the first.

        The interval, in seconds, is a granted one; 0 counts as the shortest.
        """
        reads_per_s = 1 / (interval or self.settings.min_interval_ms / 1000)
        return limit + max(0, round(reads_per_s) - 1)

    def granted(self, question: Question) -> Question:
        """Returns the question to watch: a range gets the granted limit."""
        limit = min(question.limit or self.settings.page_size, MAX_LIMIT)
        return question if question.limit == limit else replace(question, limit=limit)
