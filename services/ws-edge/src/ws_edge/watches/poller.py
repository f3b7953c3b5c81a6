"""Reads due keys from the query service, and hands the hub the results.

Keys with an interval are read in batches, one under way per store and instance. Keys with interval 0 are held in long
polls, which the query service answers as soon as one of the keys changes.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain

import structlog
from typing_extensions import override

from ws_edge.errors import RequestError, UnavailableError
from ws_edge.metrics import Metrics
from ws_edge.model.stores import Store
from ws_edge.upstream.queries import MAX_REQUEST_BYTES, Progress, RangeResult, Result
from ws_edge.upstream.query_client import QueryClient
from ws_edge.watches.hub import Hub
from ws_edge.watches.watch import Watch, WatchStatus

BATCHING_S = 0.003
"""How long keys that are due at once wait for each other, so that a burst of them makes one call."""

SLOW_S = 0.1
"""A batch that takes longer is slow."""

FAILED_REST_S = 0.5
"""How long a lane rests when nothing of its batch was answered."""

MAX_REST_S = 2.0

SETTLED_S = 0.05
"""The minimum age of a long poll when it is begun anew for keys that join. While ten thousand come one by one, the
instance is called twenty times a second. They do not wait: their first value is read before they join."""

log = structlog.get_logger(__name__)


@dataclass(slots=True, eq=False)
class Poller:
    """Runs the reads of a hub, in lanes by kind, store and instance."""

    hub: Hub
    client: QueryClient
    metrics: Metrics
    clock: Callable[[], float]
    woken: asyncio.Event
    """Set by the hub when something is due before the next tick."""
    batch_keys: int
    """The maximum number of keys of one call."""
    long_poll_s: float
    """The maximum time for which a long poll is held."""
    long_poll_keys_per_s: float
    """The maximum number of keys that all long polls together ask for in a second."""
    _lanes: "dict[tuple[type[Lane], Store, str], list[Lane]]" = field(default_factory=dict, init=False)

    @property
    def held_keys(self) -> int:
        return sum(len(lane.watches) for lane in chain(*self._lanes.values()) if isinstance(lane, LongPollLane))

    def spacing(self) -> float:
        """Returns the seconds from the beginning of one long poll of a lane to that of the next.

        A long poll asks for all keys of its lane, so many changes in a short time cost as many reads of unchanged
        keys. Hence few keys are asked for again at once, and ten thousand cost no more than timed reads of them.
        """
        return self.held_keys / self.long_poll_keys_per_s

    async def run(self) -> None:
        """Goes on until it is cancelled."""
        try:
            while True:
                self.woken.clear()
                self.hub.advance()
                for watch in self.hub.take_due():
                    self._lane_for(watch).add(watch)
                with suppress(TimeoutError):
                    async with asyncio.timeout(self.hub.next_at() - self.clock()):
                        await self.woken.wait()
                        await asyncio.sleep(BATCHING_S)
        finally:
            for lane in chain(*self._lanes.values()):
                lane.task.cancel()

    def take(self, watch: Watch, result: Result) -> None:
        if isinstance(result, Progress):
            self.hub.unchanged(watch, result)
        elif isinstance(result, RequestError):
            self.metrics.failed_keys.inc()
            self.hub.failed(watch, result)
        elif isinstance(result, RangeResult):
            self.metrics.changed_keys.inc()
            self.hub.answered(watch, result)

    def forget(self, lane: "Lane") -> None:
        name = type(lane), lane.store, lane.address
        self._lanes[name].remove(lane)
        if not self._lanes[name]:
            del self._lanes[name]

    def _lane_for(self, watch: Watch) -> "Lane":
        store = watch.question.store
        address = self.client.address(store, watch.query())
        kind = LongPollLane if watch.status is WatchStatus.HELD else BatchLane
        lanes = self._lanes.setdefault((kind, store, address), [])
        for lane in lanes:
            if lane.has_room(watch):
                return lane
        lanes.append(kind(self, store, address))
        return lanes[-1]


class Lane(ABC):
    """Keys and ranges of one store that are read together at one instance. It ends when there are none."""

    failure: str
    """The log event of a read that fails by a defect."""

    def __init__(self, poller: Poller, store: Store, address: str) -> None:
        self.store = store
        self.address = address
        self.watches: dict[Watch, None] = {}
        self._poller = poller
        self._began = 0.0
        self.task = asyncio.create_task(self._run())

    def has_room(self, watch: Watch) -> bool:  # noqa: ARG002  others wait for the next batch
        """Returns whether the lane can take one more watch."""
        return True

    def add(self, watch: Watch) -> None:
        self.watches[watch] = None

    @abstractmethod
    async def _next(self) -> list[Watch]:
        """Waits until the lane may read, and returns the watches to read; none when the lane is to end."""

    @abstractmethod
    async def _read(self, watches: list[Watch]) -> None: ...

    async def _run(self) -> None:
        poller = self._poller
        try:
            while watches := await self._next():
                self._began = poller.clock()
                try:
                    await self._read(watches)
                except Exception:
                    # An error of one lane must not stop the others.
                    log.exception(self.failure, store=self.store.name, keys=len(watches))
                    for watch in watches:
                        self.watches.pop(watch, None)
                        poller.take(watch, UnavailableError(f"{watch.question} cannot be read: tell the operators"))
        finally:
            poller.forget(self)


class BatchLane(Lane):
    """The timed reads of one store at one instance, of which at most one batch is under way.

    While the instance is slow, keys that fall due wait for the next batch and are in it once, so ticks never pile up,
    and the lane rests after a batch for as long as the batch took. Keys are read in the order in which they fell due,
    so neither new keys nor timed ones wait for ever.
    """

    failure = "poll_failed"
    _rest_s = 0.0

    @override
    async def _next(self) -> list[Watch]:
        await asyncio.sleep(self._rest_s)
        due = [watch for watch in self.watches if watch.status is not WatchStatus.ENDED]
        limit = self._poller.batch_keys
        self.watches = dict.fromkeys(due[limit:])
        return due[:limit]

    @override
    async def _read(self, watches: list[Watch]) -> None:
        poller, queries = self._poller, [watch.query() for watch in watches]
        self._rest_s = FAILED_REST_S
        with poller.metrics.poll_seconds.labels(self.store.name).time():
            results = await poller.client.poll(self.store, queries)
        poller.metrics.polled_keys.inc(len(watches))
        for watch, result in zip(watches, results, strict=True):
            poller.take(watch, result)
        is_answered = any(not isinstance(result, RequestError) for result in results)
        self._rest_s = rest(poller.clock() - self._began, is_answered)


class LongPollLane(Lane):
    """Keys of one store that are read from one instance by long poll: one poll, however many watch them.

    A key stays from one poll to the next until no watch wants its changes at once any more, or the poll fails.
    """

    failure = "long_poll_failed"
    _renewal: asyncio.Timeout | None = None
    """Ends the poll under way, once a key has joined."""
    _size = 0
    """The size of its queries, in bytes."""

    @override
    def has_room(self, watch: Watch) -> bool:
        size = self._size + len(watch.query().encoded)
        return len(self.watches) < self._poller.batch_keys and size <= MAX_REQUEST_BYTES

    @override
    def add(self, watch: Watch) -> None:
        """Adds the key; the poll under way soon begins anew with it, and asks again for its answers."""
        super().add(watch)
        self._size += len(watch.query().encoded)
        if self._renewal is not None and self._renewal.when() is None:
            age = self._poller.clock() - self._began
            self._renewal.reschedule(asyncio.get_running_loop().time() + SETTLED_S - age)

    @override
    async def _next(self) -> list[Watch]:
        if self.watches:
            await asyncio.sleep(max(BATCHING_S, self._began + self._poller.spacing() - self._poller.clock()))
        # While keys join, no poll ends by itself: those that nobody watches any more must go all the same.
        self.watches = {watch: None for watch in self.watches if watch.status is WatchStatus.HELD}
        self._size = sum(len(watch.query().encoded) for watch in self.watches)
        return list(self.watches)

    @override
    async def _read(self, watches: list[Watch]) -> None:
        poller, queries = self._poller, [watch.query() for watch in watches]
        try:
            async with asyncio.timeout(None) as self._renewal:
                results = await poller.client.long_poll(self.store, self.address, queries, poller.long_poll_s)
        except TimeoutError:
            return
        finally:
            self._renewal = None
        poller.metrics.polled_keys.inc(len(watches))
        for watch, result in zip(watches, results, strict=True):
            if watch.status is WatchStatus.HELD:
                poller.take(watch, result)
            if watch.status is not WatchStatus.HELD:
                self.watches.pop(watch, None)  # it is read outside of the lane, and comes back from there
            elif watch.interval != 0 or poller.client.address(self.store, watch.query()) != self.address:
                self.watches.pop(watch, None)
                poller.hub.release(watch)


def rest(took: float, is_answered: bool) -> float:
    """Returns the seconds that a lane rests after a batch, so that a slow instance is asked half the time at most."""
    if not is_answered:
        return FAILED_REST_S
    return min(took, MAX_REST_S) if took > SLOW_S else 0.0
