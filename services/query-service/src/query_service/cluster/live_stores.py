"""Follows the stores file: takes changes while running, and reports those that need a restart."""

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field

import structlog

from query_service.cluster.view import View
from query_service.metrics import Metrics
from query_service.storage.stores_file import StoreDefinition
from statecast_service.watched_files import FollowedFile

_LIVE = {"description", "interval", "keeps", "private", "readers"}
"""Keys of a store that are passed on to edges and decide nothing here."""

_log = structlog.get_logger()


@dataclass(eq=False)
class LiveStores:
    """Takes the stores of the file; `file.run` is one task that looks at it every `interval_s` seconds.

    A store that is new is taken, and one that is gone is no longer served; its files stay on disk. Changes to a
    served store that need a restart are refused until then, and the store stays as it is. `read` is that of
    FollowedFile. `set_stores` takes all stores that are served from now on, and `announce` the topics of those that do
    not have the names of their topics, as Member does.
    """

    view: View
    read: Callable[[], Sequence[StoreDefinition] | None]
    set_stores: Callable[[Mapping[str, StoreDefinition]], None]
    announce: Callable[[tuple[tuple[str, str], ...]], None]
    metrics: Metrics
    interval_s: float
    file: FollowedFile[Sequence[StoreDefinition]] = field(init=False)
    _topics: dict[str, str] = field(init=False)

    def __post_init__(self) -> None:
        self._topics = {name: store.topic for name, store in self.view.stores.items()}
        self.file = FollowedFile(self.read, self._take, self._report, self.interval_s)

    def _take(self, stores: Sequence[StoreDefinition]) -> Set[str]:
        wanted = {store.name: store for store in stores}
        served, refusals = dict(self.view.stores), set[str]()
        for name in served.keys() - wanted.keys():
            _log.info("a store was removed from the file; no longer serving it, keeping its files", store=name)
            del served[name]
        # A topic has one reader: another store's replicas of it must be closed before.
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
                _log.info("a store was added to the file", store=name, topic=store.topic, message=store.message)
                served[name] = store
                self._topics[name] = store.topic
        if served != self.view.stores:
            self.announce(tuple(sorted((name, topic) for name, topic in self._topics.items() if topic != name)))
            self.set_stores(dict(sorted(served.items())))
        return refusals

    def _report(self, problems: Set[str], new: Set[str]) -> None:
        for problem in sorted(new):
            _log.error("the stores file differs from the served stores", reason=problem)
        self.metrics.stores_file.set(0 if problems else 1)


def _merged(served: StoreDefinition, wanted: StoreDefinition) -> tuple[StoreDefinition, list[str]]:
    """Returns the served store with the live changes, and the names of fields that need a restart."""
    changed = [name for name in StoreDefinition.model_fields if getattr(served, name) != getattr(wanted, name)]
    live = {name: getattr(wanted, name) for name in changed if name in _LIVE}
    return served.model_copy(update=live) if live else served, [name for name in changed if name not in _LIVE]
