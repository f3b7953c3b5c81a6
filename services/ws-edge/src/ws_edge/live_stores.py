"""The stores that clients may read now: they follow the stores file while the edge runs."""

import asyncio
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field

import structlog
from typing_extensions import override

from statecast_service.errors import ServiceError
from ws_edge.metrics import Metrics
from ws_edge.stores import Store, Stores

log = structlog.get_logger(__name__)


class CurrentStores(Mapping[str, Store]):
    """A mapping whose owner replaces what it holds; everybody else looks up in it each time."""

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
        """Holds other stores from now on; returns the names of those that are gone or are not as they were.

        A store that says the same as before stays the same object. So does the class of its rows, until a restart:
        what is mounted may have got more fields meanwhile.
        """
        same = {name: store for name, store in self._stores.items() if name in stores and store.is_like(stores[name])}
        left = frozenset(self._stores.keys() - same.keys())
        self._stores = {**stores, **same}
        return left


@dataclass(eq=False)
class LiveStores:
    """One task that looks at the file every `interval_s` seconds.

    A store that is new can be read and watched at once. One that is gone or has changed, be it who may see its rows,
    ends all that was granted by what it was: `end_watchers` takes the names of such stores and ends what watches them.
    A store of which the query service has another notion is not served, until both agree: `disagreement` says of some
    stores what that is. A file that is wrong changes nothing. `read` returns the stores of a file that has changed
    since the last time, None without a change; it blocks, and raises ServiceError.
    """

    stores: CurrentStores
    read: Callable[[], Stores | None]
    disagreement: Callable[[Stores], str | None]
    end_watchers: Callable[[Collection[str]], None]
    metrics: Metrics
    interval_s: float
    _wanted: Stores | None = field(default=None, init=False)
    _told: frozenset[str] = field(default=frozenset(), init=False)

    async def run(self) -> None:
        """Looks until it is cancelled."""
        while True:
            await asyncio.sleep(self.interval_s)
            await self.look()

    async def look(self) -> None:
        try:
            changed = await asyncio.to_thread(self.read)
        except ServiceError as error:
            self._tell({f"the stores stay as they are: {error}"})
            return
        if changed is not None:
            self._wanted, self._told = changed, frozenset()
            self.metrics.stores_file.set(1)
        if self._wanted is not None:
            self._take(self._wanted)

    def _take(self, wanted: Stores) -> None:
        reasons = {name: self.disagreement({name: store}) for name, store in wanted.items()}
        served = {name: store for name, store in wanted.items() if reasons[name] is None}
        came = served.keys() - self.stores.keys()
        left = self.stores.replace(served)
        if came or left:
            log.info("stores_changed", new=sorted(came), gone_or_changed=sorted(left))
        if left:
            self.end_watchers(left)
        self._tell({reason for reason in reasons.values() if reason is not None})

    def _tell(self, problems: set[str]) -> None:
        for problem in sorted(problems - self._told):
            log.error("stores_file_refused", reason=problem)
        if problems:
            self.metrics.stores_file.set(0)
        self._told = frozenset(problems)
