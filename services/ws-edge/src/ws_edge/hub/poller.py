"""Asks for the keys that are due, one batch per store and instance, and tells the hub what came back.

While an instance is slow, it is asked for less: a lane rests after a slow batch for as long as the batch took. However
many keys fall due at once, when ten thousand clients come back, an instance has one call of a lane at a time.
"""

import asyncio
from collections.abc import Callable

import structlog

from ws_edge.errors import RequestError
from ws_edge.hub.hub import Hub
from ws_edge.hub.interest import AnyWatch
from ws_edge.hub.live_lanes import LiveLanes
from ws_edge.metrics import Metrics
from ws_edge.querying.query_client import QueryClient
from ws_edge.querying.questions import Answer, Progress
from ws_edge.stores import Store, Stores

BATCHING_S = 0.003
"""How long new subscriptions wait for each other, so that a burst of them makes one batch."""

SLOW_S = 0.1
"""A batch that takes longer is slow."""

FAILED_REST_S = 0.5
"""How long a lane rests when nothing of its batch was answered."""

MOST_REST_S = 2.0

log = structlog.get_logger(__name__)


class Lane:
    """The keys of one store that one instance is asked for. It has at most one batch under way: while the instance is
    slow, keys that fall due wait for the next batch and are in it once, so that ticks never pile up. They are asked for
    in the order in which they fell due, so neither new keys nor timed ones wait for ever."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.due: list[AnyWatch] = []
        self.task: asyncio.Task[None] | None = None

    def take(self, most: int) -> list[AnyWatch]:
        """Returns the keys that have been due the longest and are still watched, `most` of them at the most."""
        due = [watch for watch in self.due if watch.subscriptions]
        self.due = due[most:]
        return due[:most]


class Poller:
    """Runs the timed reads of a hub."""

    def __init__(
        self,
        hub: Hub,
        client: QueryClient,
        stores: Stores,
        metrics: Metrics,
        clock: Callable[[], float],
        live: LiveLanes,
        batch_keys: int,
    ) -> None:
        """A batch asks for `batch_keys` at the most."""
        self._hub = hub
        self._client = client
        self._stores = stores
        self._metrics = metrics
        self._clock = clock
        self._lanes: dict[tuple[str, str], Lane] = {}
        self._fresh = asyncio.Event()
        self._live = live
        self._batch_keys = batch_keys
        hub.on_fresh = self._fresh.set
        hub.on_live = self._hold_open

    async def run(self) -> None:
        """Goes on until it is cancelled."""
        try:
            while True:
                self._fresh.clear()
                self._hub.advance()
                self._send_out(self._hub.take_due())
                await self._next_turn()
        finally:
            self._live.close()
            for lane in self._lanes.values():
                if lane.task is not None:
                    lane.task.cancel()

    async def _next_turn(self) -> None:
        pause = self._hub.next_at() - self._clock()
        try:
            async with asyncio.timeout(pause):
                await self._fresh.wait()
                await asyncio.sleep(BATCHING_S)
        except TimeoutError:
            return

    def _send_out(self, watches: list[AnyWatch]) -> None:
        for watch in watches:
            store = self._stores[watch.key.store]
            address = self._client.route(store, watch.ask().group_hash)
            lane = self._lanes.get((store.name, address))
            if lane is None:
                lane = self._lanes[store.name, address] = Lane(store)
            lane.due.append(watch)
            if lane.task is None:
                lane.task = asyncio.create_task(self._drive(lane, (store.name, address)))

    def _hold_open(self, watch: AnyWatch) -> None:
        self._live.add(self._stores[watch.key.store], watch)

    async def _drive(self, lane: Lane, name: tuple[str, str]) -> None:
        while watches := lane.take(self._batch_keys):
            began = self._clock()
            try:
                answered = await self._ask(lane.store, watches)
            except Exception:
                # Whatever is wrong with one batch, the other keys must go on.
                log.exception("poll_failed", store=lane.store.name, keys=len(watches))
                answered = False
                for watch in watches:
                    self._hub.failed(watch)
            await asyncio.sleep(rest(self._clock() - began, answered))
        del self._lanes[name]

    async def _ask(self, store: Store, watches: list[AnyWatch]) -> bool:
        """Returns whether there was an answer for any of the keys."""
        questions = [watch.ask() for watch in watches]
        with self._metrics.poll_seconds.labels(store.name).time():
            answers = await self._client.ask(store, questions)
        self._metrics.polled_keys.inc(len(watches))
        for watch, answer in zip(watches, answers, strict=True):
            self._take(watch, answer)
        return any(not isinstance(answer, RequestError) for answer in answers)

    def _take(self, watch: AnyWatch, answer: Answer) -> None:
        if answer is None:
            self._hub.unchanged(watch)
        elif isinstance(answer, Progress):
            watch.advance(answer.position)
            self._hub.unchanged(watch)
        elif isinstance(answer, RequestError):
            self._metrics.failed_keys.inc()
            self._hub.failed(watch)
        else:
            self._metrics.changed_keys.inc()
            self._hub.answered(watch, answer)


def rest(took: float, answered: bool) -> float:
    """How many seconds a lane rests after a batch, so that a slow instance is asked half of the time at the most."""
    if not answered:
        return FAILED_REST_S
    return min(took, MOST_REST_S) if took > SLOW_S else 0.0
