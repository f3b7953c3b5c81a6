"""The stores that clients may read now: they follow the stores file while the edge runs."""

from collections.abc import Callable, Collection, Iterator, Mapping, Set
from dataclasses import dataclass, field

import structlog
from typing_extensions import override

from statecast_service.watched_files import FollowedFile
from ws_edge.metrics import Metrics
from ws_edge.stores import Store, Stores

log = structlog.get_logger(__name__)


class CurrentStores(Mapping[str, Store]):
    """A mapping that its owner fills anew; everybody else looks up in it each time."""

    def __init__(self, stores: Stores) -> None:
        self._stores = dict(stores)

    @override
    def __getitem__(self, name: str) -> Store:
        return self._stores[name]

    @override
    def __iter__(self) -> Iterator[str]:
        return iter(self._stores)

    @override
    def __len__(self) -> int:
        return len(self._stores)

    def replace(self, stores: Stores) -> frozenset[str]:
        """Holds other stores from now on; returns the names of those that are gone or have changed.

        A store with the same definition stays the same object. A store with a redefined message has changed: it may
        have private fields by now.
        """
        same = {name: store for name, store in self._stores.items() if name in stores and store.is_like(stores[name])}
        left = frozenset(self._stores.keys() - same.keys())
        self._stores = {**stores, **same}
        return left


@dataclass(eq=False)
class LiveStores:
    """Follows the stores file; `file.run` is one task that looks at it every `interval_s` seconds.

    A new store can be read and watched at once. A store that is gone or has changed, also in who may see its rows,
    ends all that was granted by its former definition: `end_watchers` takes the names of such stores and ends their
    watches. A store that the query service defines otherwise is not served until both agree: `disagreement` names the
    difference for some stores. `read` is that of FollowedFile.
    """

    stores: CurrentStores
    read: Callable[[], Stores | None]
    disagreement: Callable[[Stores], str | None]
    end_watchers: Callable[[Collection[str]], None]
    metrics: Metrics
    interval_s: float
    file: FollowedFile[Stores] = field(init=False)

    def __post_init__(self) -> None:
        self.file = FollowedFile(self.read, self._take, self._report, self.interval_s)

    def _take(self, wanted: Stores) -> Set[str]:
        reasons = {name: self.disagreement({name: store}) for name, store in wanted.items()}
        served = {name: store for name, store in wanted.items() if reasons[name] is None}
        came = served.keys() - self.stores.keys()
        left = self.stores.replace(served)
        if came or left:
            log.info("stores_changed", new=sorted(came), gone_or_changed=sorted(left))
        if left:
            self.end_watchers(left)
        return {reason for reason in reasons.values() if reason is not None}

    def _report(self, problems: Set[str], new: Set[str]) -> None:
        for problem in sorted(new):
            log.error("stores_file_refused", reason=problem)
        self.metrics.stores_file.set(0 if problems else 1)
