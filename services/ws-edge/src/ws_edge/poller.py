"""Asks for the keys that are due, one batch per store and instance, and tells the hub what came back."""

import asyncio
from collections.abc import Callable

import structlog

from ws_edge.errors import RequestError
from ws_edge.hub import Hub
from ws_edge.metrics import Metrics
from ws_edge.query_client import QueryClient
from ws_edge.questions import Answer, question
from ws_edge.stores import Store, Stores
from ws_edge.subscription import Watch

BATCHING_S = 0.003
"""How long new subscriptions wait for each other, so that a burst of them makes one batch."""

log = structlog.get_logger(__name__)


class Lane:
    """The keys of one store that one instance is asked for. It has at most one batch under way: while the instance is
    slow, keys that fall due wait for the next batch and are in it once, so that ticks never pile up."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.due: list[Watch] = []
        self.task: asyncio.Task[None] | None = None


class Poller:
    """Runs the timed reads of a hub."""

    def __init__(
        self, hub: Hub, client: QueryClient, stores: Stores, metrics: Metrics, clock: Callable[[], float]
    ) -> None:
        self._hub = hub
        self._client = client
        self._stores = stores
        self._metrics = metrics
        self._clock = clock
        self._lanes: dict[tuple[str, str], Lane] = {}
        self._fresh = asyncio.Event()
        hub.on_fresh = self._fresh.set

    async def run(self) -> None:
        """Goes on until it is cancelled."""
        try:
            while True:
                self._fresh.clear()
                self._hub.advance()
                self._send_out(self._hub.take_due())
                await self._next_turn()
        finally:
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

    def _send_out(self, watches: list[Watch]) -> None:
        for watch in watches:
            store = self._stores[watch.key.store]
            if watch.question is None:
                watch.question = question(watch.key)
            address = self._client.route(store, watch.question.group_hash)
            lane = self._lanes.get((store.name, address))
            if lane is None:
                lane = self._lanes[store.name, address] = Lane(store)
            lane.due.append(watch)
            if lane.task is None:
                lane.task = asyncio.create_task(self._drive(lane, (store.name, address)))

    async def _drive(self, lane: Lane, name: tuple[str, str]) -> None:
        while lane.due:
            watches, lane.due = [watch for watch in lane.due if watch.subscriptions], []
            try:
                await self._ask(lane.store, watches)
            except Exception:
                # Whatever is wrong with one batch, the other keys must go on.
                log.exception("poll_failed", store=lane.store.name, keys=len(watches))
                for watch in watches:
                    self._hub.failed(watch)
        del self._lanes[name]

    async def _ask(self, store: Store, watches: list[Watch]) -> None:
        questions = []
        for watch in watches:
            asked = watch.question or question(watch.key)
            watch.question = asked.since(watch.position)
            questions.append(watch.question)
        with self._metrics.poll_seconds.labels(store.name).time():
            answers = await self._client.ask(store, questions)
        self._metrics.polled_keys.inc(len(watches))
        for watch, answer in zip(watches, answers, strict=True):
            self._take(watch, answer)

    def _take(self, watch: Watch, answer: Answer) -> None:
        if answer is None:
            self._hub.unchanged(watch)
        elif isinstance(answer, RequestError):
            self._metrics.failed_keys.inc()
            self._hub.failed(watch)
        else:
            self._metrics.changed_keys.inc()
            self._hub.answered(watch, answer)
