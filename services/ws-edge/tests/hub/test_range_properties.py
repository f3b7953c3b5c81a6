"""Whatever happens in a range and however it is read: who does what the frames say holds what is in the range."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from ws_edge.authorization import Consumer
from ws_edge.errors import RequestError
from ws_edge.hub.hub import Hub
from ws_edge.hub.range_subscription import RangeSubscription
from ws_edge.hub.range_watch import RangeWatch
from ws_edge.querying.questions import RangeAnswer, RangeQuestion, Removal
from ws_edge.states import Position, RangeKey, StoreKey, Version

STAFF = Consumer("", "operator", True)
LIMIT = 2


class Client:
    """Keeps one row per member as it is told; `through` is where it can resume."""

    def __init__(self, rows: dict[str, Version], through: Position | None) -> None:
        self.rows = dict(rows)
        self.through = through

    def range_started(self, subscription: RangeSubscription, recovered: bool) -> None:
        if not recovered:
            self.rows.clear()
        self.through = subscription.through or self.through

    def range_changed(self, subscription: RangeSubscription) -> None:
        """Is read when the machine says so."""

    def range_refused(self, subscription: RangeSubscription, error: RequestError) -> None:
        raise AssertionError("staff see everything")

    def range_delayed(self, subscription: RangeSubscription) -> None:
        pass

    def read(self, subscription: RangeSubscription) -> None:
        change = subscription.take()
        if change is None:
            return
        member = change.key.member
        if change.after is None:
            self.rows.pop(member, None)
        else:
            held = self.rows.get(member)
            assert held is None or held.position < change.after.position, "a row twice, or back"
            self.rows[member] = change.after
        self.through = subscription.through or self.through


class Ranges(RuleBasedStateMachine):
    """Rows of one group come, move and go; answers are given as the query service would, now and then whole."""

    @initialize(reverse=st.booleans())
    def begin(self, reverse: bool) -> None:
        self.now = 0.0
        self.hub = Hub(lambda: self.now, 0.025, 3.0)
        self.key = RangeKey("orders-by-customer", "g", "b", "f", LIMIT, reverse)
        self.log: list[tuple[StoreKey, bool]] = []
        self.sorts: dict[str, str] = {}
        self.clients: list[tuple[Client, RangeSubscription]] = []

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
            # What it has read since `through` is told again; a client that resumes takes it as it comes.
            rows = {name: row for name, row in client.rows.items() if row.position <= (client.through or (0, -1))}
            self._join(Client(rows if rows == client.rows else {}, client.through if rows == client.rows else None))

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
            assert isinstance(watch, RangeWatch)
            answer = self._answer(watch.ask(), max(0, len(self.log) - lag), forgetful)
            self.hub.unchanged(watch) if answer is None else self.hub.answered(watch, answer)

    def _join(self, client: Client) -> None:
        self.clients.append((client, self.hub.watch_range(client, STAFF, self.key, client.through, 0.1, True)))

    def _rows(self, through: int) -> dict[StoreKey, Version]:
        rows: dict[StoreKey, Version] = {}
        for offset, (key, there) in enumerate(self.log[:through]):
            if there and self.key.sort_from <= key.sort < self.key.sort_to:
                rows[key] = Version(key, Position(1, offset), row=object())
            else:
                rows.pop(key, None)
        return rows

    def _window(self, rows: dict[StoreKey, Version]) -> list[Version]:
        return [rows[key] for key in sorted(rows, reverse=self.key.reverse)]

    def _answer(self, asked: RangeQuestion, through: int, forgetful: bool) -> RangeAnswer | None:
        position = Position(1, through - 1)
        rows = self._rows(through)
        knows = asked.after is not None and not forgetful
        first = asked.after.offset + 1 if asked.after is not None else 0
        changed = {key: offset for offset, (key, _) in enumerate(self.log[:through]) if offset >= first}
        ours = {key: at for key, at in changed.items() if self.key.sort_from <= key.sort < self.key.sort_to}
        removals = [Removal(key, Position(1, at), None) for key, at in ours.items() if key not in rows] if knows else []
        if asked.whole or not knows:
            window = self._window(rows)
            return RangeAnswer(asked.after, position, True, len(window) > LIMIT, window[:LIMIT], removals, knows)
        if not ours:
            return None
        newer = [rows[key] for key in ours if key in rows]
        return RangeAnswer(asked.after, position, False, False, newer, removals, True)

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
TestRanges.settings = settings(max_examples=200, stateful_step_count=50, deadline=None)
