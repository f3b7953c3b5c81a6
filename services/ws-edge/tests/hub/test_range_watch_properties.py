"""Whatever happens in a range and however it is read: a client that applies its changes holds the range's rows."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from ws_edge.errors import RequestError
from ws_edge.hub.hub import Hub
from ws_edge.hub.member_changes import MemberChange
from ws_edge.hub.watch import Subscription
from ws_edge.model.authorization import Consumer
from ws_edge.model.states import KeyState, Position, RangeKey, StoreKey
from ws_edge.upstream.queries import Progress, Query, RangeResult

STAFF = Consumer("", "operator", True)
LIMIT = 2


class Client:
    """Keeps one row per member; `position` is where it can resume."""

    def __init__(self, rows: dict[str, KeyState], position: Position | None) -> None:
        self.rows = dict(rows)
        self.position = position

    def started(self, subscription: Subscription, recovered: bool) -> None:
        if not recovered:
            self.rows.clear()
        self.position = subscription.position or self.position

    def changed(self, subscription: Subscription, state: KeyState | None, snapshot: bool) -> None:
        """Does nothing: the state machine decides when the client reads."""

    def refused(self, subscription: Subscription, error: RequestError) -> None:
        raise AssertionError("staff see everything")

    def change_taken(self, subscription: Subscription, change: MemberChange) -> None:
        pass

    def delayed(self, subscription: Subscription) -> None:
        pass

    def read(self, subscription: Subscription) -> None:
        change = subscription.take()
        if change is None:
            return
        state = change.state
        member = state.key.member
        if state.row is None:
            self.rows.pop(member, None)
        else:
            held = self.rows.get(member)
            assert held is None or held.position < state.position, "a row twice, or back"
            self.rows[member] = state
        self.position = subscription.position or self.position


class Ranges(RuleBasedStateMachine):
    """Rows of one group are created, moved and deleted; answers are those of the query service, sometimes whole."""

    @initialize(reverse=st.booleans())
    def begin(self, reverse: bool) -> None:
        self.now = 0.0
        self.hub = Hub(lambda: self.now, 0.025, 3.0)
        self.key = RangeKey("orders-by-customer", "g", "b", "f", LIMIT, reverse)
        self.log: list[tuple[StoreKey, bool]] = []
        self.sorts: dict[str, str] = {}
        self.clients: list[tuple[Client, Subscription]] = []

    @rule(member=st.sampled_from("vwxyz"), sort=st.sampled_from("abcdef"), polls=st.booleans())
    def put(self, member: str, sort: str, polls: bool) -> None:
        self.remove(member, sort)
        if polls:
            self.poll(0, False)
        self.log.append((StoreKey("orders-by-customer", "g", sort, member), True))
        self.sorts[member] = sort

    @rule(member=st.sampled_from("vwxyz"))
    def remove(self, member: str, keep: str | None = None) -> None:
        sort = self.sorts.get(member)
        if sort is not None and sort != keep:
            self.log.append((StoreKey("orders-by-customer", "g", sort, member), False))
            del self.sorts[member]

    @rule()
    def join(self) -> None:
        self._join(Client({}, None))

    @rule(data=st.data())
    def resume(self, data: st.DataObject) -> None:
        if self.clients:
            client, subscription = self.clients.pop(data.draw(st.integers(0, len(self.clients) - 1)))
            self.hub.unsubscribe(subscription)
            # What it has read after `position` is delivered again; a client that resumes takes it as it comes.
            rows = {name: row for name, row in client.rows.items() if row.position <= (client.position or (0, -1))}
            self._join(Client(rows if rows == client.rows else {}, client.position if rows == client.rows else None))

    @rule(data=st.data(), frames=st.sampled_from([1, 10]))
    def read(self, data: st.DataObject, frames: int) -> None:
        if self.clients:
            client, subscription = self.clients[data.draw(st.integers(0, len(self.clients) - 1))]
            for _ in range(frames):
                client.read(subscription)

    @rule(lag=st.integers(0, 2), forgetful=st.booleans())
    def poll(self, lag: int, forgetful: bool) -> None:
        self.now += 0.2
        self.hub.advance()
        for watch in self.hub.take_due():
            through = max(0, len(self.log) - lag)
            answer = self._answer(watch.query(), through, forgetful)
            if answer is None:
                self.hub.unchanged(watch, Progress(Position(1, through - 1)))
            else:
                self.hub.answered(watch, answer)

    def _join(self, client: Client) -> None:
        self.clients.append((client, self.hub.subscribe(client, STAFF, self.key, client.position, 0.1, sees_all=True)))

    def _rows(self, through: int) -> dict[StoreKey, KeyState]:
        rows: dict[StoreKey, KeyState] = {}
        for offset, (key, there) in enumerate(self.log[:through]):
            if there and self.key.sort_from <= key.sort < self.key.sort_to:
                rows[key] = KeyState(key, Position(1, offset), row=object())
            else:
                rows.pop(key, None)
        return rows

    def _window(self, rows: dict[StoreKey, KeyState]) -> list[KeyState]:
        return [rows[key] for key in sorted(rows, reverse=self.key.reverse)]

    def _answer(self, query: Query, through: int, forgetful: bool) -> RangeResult | None:
        position = Position(1, through - 1)
        rows = self._rows(through)
        knows = query.after is not None and not forgetful
        first = query.after.offset + 1 if query.after is not None else 0
        changed = {key: offset for offset, (key, _) in enumerate(self.log[:through]) if offset >= first}
        ours = {key: at for key, at in changed.items() if self.key.sort_from <= key.sort < self.key.sort_to}
        removals = [KeyState(key, Position(1, at)) for key, at in ours.items() if key not in rows] if knows else []
        if query.whole or not knows:
            window = self._window(rows)
            return RangeResult(query.after, position, True, len(window) > LIMIT, window[:LIMIT], removals, knows)
        if not ours:
            return None
        newer = [rows[key] for key in ours if key in rows]
        return RangeResult(query.after, position, False, False, newer, removals, True)

    def teardown(self) -> None:
        if not hasattr(self, "clients"):
            return
        for _ in range(4):
            self.poll(0, False)
            for client, subscription in self.clients:
                while subscription.pending:
                    client.read(subscription)
        expected = {row.key.member: row.position for row in self._window(self._rows(len(self.log)))[:LIMIT]}
        for client, _ in self.clients:
            assert {name: row.position for name, row in client.rows.items()} == expected


TestRanges = Ranges.TestCase
TestRanges.settings = settings(max_examples=200, stateful_step_count=50)
