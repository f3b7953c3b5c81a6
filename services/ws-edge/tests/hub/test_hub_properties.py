"""Whatever replicas answer and when: no reader sees an older value after a newer one, and all get the newest."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from ws_edge.errors import RequestError, UnavailableError
from ws_edge.hub.hub import Hub
from ws_edge.hub.member_changes import MemberChange
from ws_edge.hub.watch import STALE_EPOCH_LIMIT, KeyWatch, Subscription, Watch, WatchStatus
from ws_edge.model.authorization import Consumer
from ws_edge.model.states import KeyState, Position, StoreKey

KEY = StoreKey("orders-by-key", "order-1")
STAFF = Consumer("", "operator", True)


class Reader:
    """Records the positions that it receives, beginning with the one that it resumes from."""

    def __init__(self, after: Position | None) -> None:
        self.positions = [] if after is None else [after]

    def started(self, subscription: Subscription, recovered: bool) -> None:
        if not recovered:
            self.positions.clear()

    def changed(self, subscription: Subscription, state: KeyState | None, snapshot: bool) -> None:
        assert state is not None
        self.positions.append(state.position)

    def refused(self, subscription: Subscription, error: RequestError) -> None:
        raise AssertionError("staff see everything")

    def change_taken(self, subscription: Subscription, change: MemberChange) -> None:
        pass

    def delayed(self, subscription: Subscription) -> None:
        pass


class Replicas(RuleBasedStateMachine):
    """Replicas answer with their applied state, in any order; the topic may be created anew."""

    @initialize()
    def begin(self) -> None:
        self.now = 0.0
        self.hub = Hub(lambda: self.now, 0.025, 3.0)
        self.readers: list[tuple[Reader, Subscription]] = []
        self.under_way: list[Watch] = []
        self.held: list[Watch] = []
        self.epoch, self.newest = 1, 1

    @rule(after=st.none() | st.integers(0, 8), interval=st.sampled_from([0.0, 0.1, 0.25, 1.0]))
    def subscribe(self, after: int | None, interval: float) -> None:
        position = None if after is None else Position(self.epoch, min(after, self.newest))
        reader = Reader(position)
        self.readers.append((reader, self.hub.subscribe(reader, STAFF, KEY, position, interval)))

    @rule(data=st.data())
    def leave(self, data: st.DataObject) -> None:
        if self.readers:
            at = data.draw(st.integers(0, len(self.readers) - 1))
            self.hub.unsubscribe(self.readers.pop(at)[1])

    @rule(more=st.integers(1, 3))
    def write(self, more: int) -> None:
        self.newest += more

    @rule()
    def recreate_topic(self) -> None:
        self.epoch, self.newest = self.epoch + 1, 1

    @rule(seconds=st.sampled_from([0.01, 0.03, 0.1, 0.5, 2.0]))
    def wait(self, seconds: float) -> None:
        self.now += seconds
        self.hub.advance()
        self._take_due()

    def _take_due(self) -> None:
        for watch in self.hub.take_due():
            (self.held if watch.status is WatchStatus.HELD else self.under_way).append(watch)

    @rule(lag=st.integers(0, 5), old_epoch=st.booleans(), row=st.booleans())
    def answer(self, lag: int, old_epoch: bool, row: bool) -> None:
        watch = self._take_watch()
        if watch is not None:
            epoch = self.epoch - (old_epoch and self._a_replica_may_lag(watch))
            position = Position(epoch, max(1, self.newest - lag))
            # What an offset holds does not depend on the replica.
            held = object() if row and position.offset % 3 else None
            self.hub.answered(watch, KeyState(KEY, position, row=held, deleted=held is None))

    def _take_watch(self) -> Watch | None:
        """Takes a watch that may be answered; one in a long poll stays there until it is released."""
        if self.under_way:
            return self.under_way.pop()
        for watch in [watch for watch in self.held if watch.status is not WatchStatus.HELD or watch.interval]:
            self.held.remove(watch)
            if watch.status is WatchStatus.HELD:
                self.hub.release(watch)
        return self.held[-1] if self.held else None

    def _a_replica_may_lag(self, watch: Watch) -> bool:
        """Whether the edge can tell that the previous epoch is old: it has retired it, or has seen no newer one."""
        assert isinstance(watch, KeyWatch)
        latest = watch.latest
        if self.epoch == 1 or watch.stale_answers == STALE_EPOCH_LIMIT - 1:
            return False
        return latest is None or latest.position.epoch < self.epoch or self.epoch - 1 in watch.retired_epochs

    @rule()
    def fail(self) -> None:
        watch = self._take_watch()
        if watch is not None:
            self.hub.failed(watch, UnavailableError("away"))

    @invariant()
    def nobody_is_taken_back(self) -> None:
        for reader, _ in getattr(self, "readers", []):
            for earlier, later in zip(reader.positions, reader.positions[1:], strict=False):
                assert later > earlier, f"{reader.positions} goes backwards"

    def teardown(self) -> None:
        if not hasattr(self, "readers"):
            return
        last = KeyState(KEY, Position(self.epoch, self.newest + 1), row=object())
        for _ in range(100):
            self.now += 0.1
            self.hub.advance()
            self._take_due()
            for _ in range(len(self.under_way) + 1):
                if (watch := self._take_watch()) is not None:
                    self.hub.answered(watch, last)

        assert all(reader.positions[-1] == last.position for reader, _ in self.readers)


TestReplicas = Replicas.TestCase
TestReplicas.settings = settings(max_examples=150, stateful_step_count=40)
