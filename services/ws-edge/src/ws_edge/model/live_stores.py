"""The stores that clients may read now: those that the query service lists."""

from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass, field

import structlog

from statecast.descriptors import MessageTypes
from statecast.query.v1.query_pb2 import Store as ListedStore
from statecast.query.v1.query_service_pb2 import ListShardsResponse
from statecast_service.watched_files import FollowedFile
from ws_edge.metrics import Metrics
from ws_edge.model.listed_stores import BYTES, fault_of, store_of
from ws_edge.model.stores import Store, Stores

log = structlog.get_logger(__name__)


@dataclass(eq=False)
class LiveStores:
    """Keeps `stores` as the query service lists them, with rows of `types`; `own` are those that edges write.

    A new store can be read and watched at once. A store that is gone or has changed, also in who may see its rows,
    ends all that was granted by its former definition: `on_change` is called then, and ends the watches. It is called
    for a new store, too. A store that this edge cannot show, for example without its message, is left out.
    `descriptors.run` is one task that looks at the mounted messages every `interval_s` seconds; `read_types` is the
    `read` of FollowedFile.
    """

    stores: dict[str, Store]
    """Everybody else looks up in it each time. A store that stays as it is stays the same object."""
    types: MessageTypes
    own: Stores
    read_types: Callable[[], MessageTypes | None]
    on_change: Callable[[], None]
    metrics: Metrics
    interval_s: float
    descriptors: FollowedFile[MessageTypes] = field(init=False)
    _listed: Sequence[ListedStore] = field(default=(), init=False)
    _fault: str | None = field(default=None, init=False)
    _problems: Set[str] = field(default=frozenset(), init=False)

    def __post_init__(self) -> None:
        self.descriptors = FollowedFile(self.read_types, self._take_types, self._report, self.interval_s)

    def take(self, listing: ListShardsResponse) -> None:
        """Serves the stores of a listing from now on. One that does not say who may read its stores changes nothing."""
        listed = [*listing.stores, *listing.without_topic]
        self._fault = fault_of(listed, self.own)
        if self._fault is None:
            self._listed = [each for each in listed if each.store not in self.own and each.message != BYTES]
            self._serve()

    def reason(self) -> str | None:
        """Returns why there is no store to serve; None when there is one."""
        return None if self.stores else self._fault or "the query service lists no store that this edge can show"

    def _take_types(self, types: MessageTypes) -> Set[str]:
        if types is not self.types:
            self.types = types
            self._serve()
        return self._problems if self._fault is None else {*self._problems, self._fault}

    def _serve(self) -> None:
        served, problems = dict[str, Store](), set[str]()
        for listed in sorted(self._listed, key=lambda each: each.store):
            try:
                served[listed.store] = store_of(listed, self.types)
            except ValueError as error:
                problems.add(f"the store {listed.store} is shown to nobody: {error}")
        self._problems = problems
        came = served.keys() - self.stores.keys()
        left = {name for name, store in self.stores.items() if name not in served or not store.is_like(served[name])}
        for name in left:
            del self.stores[name]
        self.stores.update({name: store for name, store in served.items() if name not in self.stores})
        if came or left:
            log.info("stores_changed", new=sorted(came), gone_or_changed=sorted(left))
            self.on_change()

    def _report(self, problems: Set[str], new: Set[str]) -> None:
        for problem in sorted(new):
            log.error("stores_refused", reason=problem)
        self.metrics.stores_ok.set(0 if problems else 1)
