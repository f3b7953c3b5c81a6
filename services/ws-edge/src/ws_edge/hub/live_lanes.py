"""Keeps keys with an interval of 0 in long polls, which the query service answers as soon as one of them changes."""

import asyncio
from collections.abc import Callable

import structlog

from ws_edge.errors import RequestError
from ws_edge.hub.hub import Hub
from ws_edge.hub.interest import AnyWatch
from ws_edge.metrics import Metrics
from ws_edge.querying.query_client import QueryClient
from ws_edge.querying.questions import Answer, Progress, RangeAnswer
from ws_edge.states import Version
from ws_edge.stores import Store

GATHER_S = 0.003
"""How long keys that join wait for each other, so that a burst of them makes one call."""

SETTLED_S = 0.05
"""How long a poll goes on, at the least, before keys that join begin it anew: while ten thousand come one by one, the
instance is called twenty times a second. Their first value has been read when they join."""

log = structlog.get_logger(__name__)


class LiveLanes:
    """All live keys, in lanes by store and instance. A lane has one long poll under way, whoever watches its keys.

    A poll asks for all keys of its lane, so many changes in short time cost as many reads of unchanged keys. Hence the
    polls of a lane begin so far apart that all lanes together ask for at most `keys_per_s`: few keys are asked for
    again at once, and ten thousand cost no more than the timed reads of them would.
    """

    def __init__(
        self,
        hub: Hub,
        client: QueryClient,
        metrics: Metrics,
        clock: Callable[[], float],
        max_wait: float,
        keys_per_s: float,
        lane_keys: int,
    ) -> None:
        """A poll is held for `max_wait` seconds at most, and asks for at most `lane_keys`."""
        self.hub = hub
        self.client = client
        self.metrics = metrics
        self.clock = clock
        self.max_wait = max_wait
        self._keys_per_s = keys_per_s
        self._lane_keys = lane_keys
        self._lanes: dict[tuple[str, str], list[LiveLane]] = {}

    def __len__(self) -> int:
        return sum(len(lane.watches) for lanes in self._lanes.values() for lane in lanes)

    def add(self, store: Store, watch: AnyWatch) -> None:
        """Takes a key over from the timed reads until it has no live subscriber, or the query service fails."""
        address = self.client.route(store, watch.ask().group_hash)
        lanes = self._lanes.setdefault((store.name, address), [])
        lane = next((lane for lane in lanes if len(lane.watches) < self._lane_keys), None)
        if lane is None:
            lane = LiveLane(self, store, address)
            lanes.append(lane)
        lane.join(watch)

    def spacing(self) -> float:
        """The seconds from the beginning of one poll of a lane to that of the next."""
        return len(self) / self._keys_per_s

    def ended(self, lane: "LiveLane") -> None:
        """Forgets a lane that has no keys any more."""
        lanes = self._lanes[lane.store.name, lane.address]
        lanes.remove(lane)
        if not lanes:
            del self._lanes[lane.store.name, lane.address]

    def close(self) -> None:
        """Ends all polls."""
        for lanes in self._lanes.values():
            for lane in lanes:
                lane.close()


class LiveLane:
    """Live keys of one store that one instance is asked for."""

    def __init__(self, lanes: LiveLanes, store: Store, address: str) -> None:
        self.store = store
        self.address = address
        self.watches: dict[AnyWatch, None] = {}
        self._lanes = lanes
        self._poll: asyncio.Task[list[Answer] | None] | None = None
        self._began = 0.0
        self._renewal: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[None] | None = None

    def join(self, watch: AnyWatch) -> None:
        """Adds a key. The poll under way is soon begun anew with it; what that would have answered is asked again."""
        self.watches[watch] = None
        if self._poll is not None and self._renewal is None:
            age = self._lanes.clock() - self._began
            self._renewal = asyncio.get_running_loop().call_later(SETTLED_S - age, self._poll.cancel)
        if self._task is None:
            self._task = asyncio.create_task(self._drive())

    def close(self) -> None:
        """Ends the lane."""
        if self._task is not None:
            self._task.cancel()

    async def _drive(self) -> None:
        clock = self._lanes.clock
        try:
            while self.watches:
                await asyncio.sleep(max(GATHER_S, self._began + self._lanes.spacing() - clock()))
                self._began = clock()
                await self._ask(tuple(self.watches))
        finally:
            self._lanes.ended(self)

    async def _ask(self, watches: tuple[AnyWatch, ...]) -> None:
        lanes = self._lanes
        questions = [watch.ask() for watch in watches]
        poll = self._poll = asyncio.create_task(lanes.client.wait(self.store, self.address, questions, lanes.max_wait))
        try:
            await asyncio.wait({poll})
        finally:
            poll.cancel()
            self._poll = None
            if self._renewal is not None:
                self._renewal.cancel()
                self._renewal = None
        if poll.cancelled():
            return
        lanes.metrics.polled_keys.inc(len(watches))
        try:
            self._take(watches, poll.result() or [None] * len(watches), failed=poll.result() is None)
        except Exception:
            # Whatever is wrong with one lane, the others must go on.
            log.exception("live_poll_failed", store=self.store.name, keys=len(watches))
            for watch in watches:
                self._fail(watch)

    def _take(self, watches: tuple[AnyWatch, ...], answers: list[Answer], *, failed: bool) -> None:
        hub, now = self._lanes.hub, self._lanes.clock()
        for watch, answer in zip(watches, answers, strict=True):
            if not watch.live:
                self.watches.pop(watch, None)  # it is being asked for outside of the lane, and comes back from there
            elif failed or isinstance(answer, RequestError):
                self._fail(watch)
            else:
                if answer is not None:
                    self._tell(watch, answer)
                elif watch.waiting:
                    hub.unchanged(watch)
                watch.confirmed_at = now
                self._keep(watch)

    def _tell(self, watch: AnyWatch, answer: Version | RangeAnswer | Progress) -> None:
        if isinstance(answer, Progress):
            watch.advance(answer.position)
        else:
            self._lanes.metrics.changed_keys.inc()
            self._lanes.hub.answered(watch, answer)

    def _keep(self, watch: AnyWatch) -> None:
        if not watch.is_live or self._lanes.client.route(self.store, watch.ask().group_hash) != self.address:
            self.watches.pop(watch, None)
            self._lanes.hub.release(watch)

    def _fail(self, watch: AnyWatch) -> None:
        self._lanes.metrics.failed_keys.inc()
        if watch in self.watches:
            del self.watches[watch]
            self._lanes.hub.failed(watch)
