"""Follows the stores file while the instance runs: takes what can be taken live, and says what cannot."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import structlog

from query_service.cluster.view import View
from query_service.metrics import Metrics
from query_service.storage.stores_file import StoreDefinition
from statecast_service.errors import ServiceError

_LIVE = {"owner"}
"""Keys of a store that are passed on and decide nothing here."""

_log = structlog.get_logger()


@dataclass(eq=False)
class LiveStores:
    """One task on the event loop that looks at the file every `interval_s` seconds.

    A store that is new is taken, and one that is gone is no longer served; its files stay on disk. What another
    definition of a store that is served would change is refused until a restart, and the store stays as it is. A file
    that is wrong changes nothing. `read` returns the stores of a file that has changed since the last time, None
    without a change; it blocks, and raises ServiceError. `set_stores` takes all stores that are served from now on,
    and `announce` the topics of those that do not have the names of their topics, as Member does.
    """

    view: View
    read: Callable[[], Sequence[StoreDefinition] | None]
    set_stores: Callable[[Mapping[str, StoreDefinition]], None]
    announce: Callable[[tuple[tuple[str, str], ...]], None]
    metrics: Metrics
    interval_s: float
    _wanted: Sequence[StoreDefinition] | None = field(default=None, init=False)
    _told: frozenset[str] = field(default=frozenset(), init=False)
    _topics: dict[str, str] = field(init=False)

    def __post_init__(self) -> None:
        self._topics = {name: store.topic for name, store in self.view.stores.items()}

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
            self._take({store.name: store for store in self._wanted})

    def _take(self, wanted: Mapping[str, StoreDefinition]) -> None:
        served, refusals = dict(self.view.stores), set[str]()
        for name in served.keys() - wanted.keys():
            _log.info("a store is gone from the file; it is not served any more, its files stay", store=name)
            del served[name]
        # A topic has one reader: what another store held of it must be closed before.
        readers = {store.topic: name for name, store in served.items()}
        closing = {each.topic.name for each in self.view.replicas.values()}
        for name, store in wanted.items():
            if name in served:
                served[name], refused = _merged(served[name], store)
                refusals |= {f"store `{name}`: another {' and '.join(refused)} needs a restart"} if refused else set()
            elif (former := self._topics.get(name, store.topic)) != store.topic:
                refusals.add(f"store `{name}`: it was served from `{former}`: another topic needs a restart")
            elif store.topic in readers:
                refusals.add(f"store `{name}`: its topic is served as `{readers[store.topic]}` until a restart")
            elif store.topic not in closing:
                _log.info("a store is new in the file", store=name, topic=store.topic, message=store.message)
                served[name] = store
                self._topics[name] = store.topic
        if served != self.view.stores:
            self.announce(tuple(sorted((name, topic) for name, topic in self._topics.items() if topic != name)))
            self.set_stores(dict(sorted(served.items())))
        self._tell(refusals)

    def _tell(self, refusals: set[str]) -> None:
        for refusal in sorted(refusals - self._told):
            _log.error("the stores file is not as it is served", reason=refusal)
        if refusals:
            self.metrics.stores_file.set(0)
        self._told = frozenset(refusals)


def _merged(served: StoreDefinition, wanted: StoreDefinition) -> tuple[StoreDefinition, list[str]]:
    """Returns the store that is served, with what can be taken live, and the names of what cannot."""
    changed = [name for name in StoreDefinition.model_fields if getattr(served, name) != getattr(wanted, name)]
    live = {name: getattr(wanted, name) for name in changed if name in _LIVE}
    return served.model_copy(update=live) if live else served, [name for name in changed if name not in _LIVE]
