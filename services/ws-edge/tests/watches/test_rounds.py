"""A client's rows are right as of its token, through any events of rows, replicas, sockets and slow clients."""

import json
from typing import NamedTuple

from google.protobuf.json_format import MessageToDict
from google.protobuf.struct_pb2 import Value
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from ws_edge.model.authorization import EVERYONE, Consumer, OwnerRule
from ws_edge.model.json_rows import decode
from ws_edge.model.questions import Question
from ws_edge.model.states import KeyState, Position, StoreKey
from ws_edge.model.stores import Store
from ws_edge.upstream.queries import Progress, Query, RangeResult
from ws_edge.watches.audience import WatchOptions
from ws_edge.watches.hub import Hub
from ws_edge.watches.subscription import RowNews, Subscription
from ws_edge.watches.token import Resumption, mask_of, resumption_of

ALICE = Consumer("alice", "alice", False)
FIELDS = "abc"


class Record(NamedTuple):
    """A version of a row. Its index in the log is its offset; `values` is None for a removal."""

    name: str
    sort: str
    values: dict[str, int] | None


class Client:
    """Collects rows, and applies them when a token comes; keeps rows and token together."""

    def __init__(self) -> None:
        self.rows: dict[str, dict[str, int]] = {}
        self.token = ""
        self.newest: dict[str, int] = {}
        self.lose()

    def lose(self) -> None:
        """Forgets the rows without a token, because the socket has ended."""
        self.collected: list[tuple[str, dict[str, int] | None, bool]] = []
        self.is_new = False

    def ready(self, subscription: Subscription) -> None:
        """Does nothing: the state machine decides when the client reads."""

    def read(self, subscription: Subscription, rows: int, delta: bool) -> bool:
        """Takes a frame of so many rows; returns whether a token came."""
        beginning = subscription.take_beginning()
        if beginning is not None:
            self.collected, self.is_new = [], not beginning.resumed
        for _ in range(rows):
            if (row := subscription.take_row()) is None:
                break
            self._collect(row, delta)
        token = subscription.take_token()
        if token:
            self._apply(token)
        return bool(token)

    def _collect(self, row: RowNews, delta: bool) -> None:
        assert delta or row.names is None
        values = None if row.state.row is None else _values(row.state)
        if values is not None and row.names is not None:
            values = {name: values[name] for name in row.names}
        self.collected.append((row.state.key.member, values, row.names is not None))

    def _apply(self, token: str) -> None:
        rows = {} if self.is_new else dict(self.rows)
        for name, values, is_delta in self.collected:
            if values is None:
                rows.pop(name, None)
            else:
                rows[name] = {**rows[name], **values} if is_delta else values
        self.rows, self.token, self.collected, self.is_new = rows, token, [], False


def _values(state: KeyState) -> dict[str, int]:
    return {name: int(value) for name, value in MessageToDict(state.row).items()}


class Rounds(RuleBasedStateMachine):
    """A client of one question, and edges with replicas that lag. The answers are those of a query service."""

    @initialize(
        kind=st.sampled_from(["key", "range", "window"]),
        reverse=st.booleans(),
        delta=st.booleans(),
        interval=st.sampled_from([0.0, 0.1]),
    )
    def begin(self, kind: str, reverse: bool, delta: bool, interval: float) -> None:
        store = Store("boards", Value, kind != "key", OwnerRule(None, everyone=True))
        self.question = Question(store, "g", limit={"key": 1, "range": 20, "window": 2}[kind], reverse=reverse)
        self.names = [""] if kind == "key" else list("wxyz")
        self.is_exact = kind != "window"
        self.delta, self.interval = delta, interval
        self.now = 0.0
        self.log: list[Record] = []
        self.client = Client()
        self.subscription: Subscription | None = None

    @rule(data=st.data(), changed=st.sets(st.sampled_from(FIELDS), min_size=1), sort=st.sampled_from("st"))
    def put(self, data: st.DataObject, changed: set[str], sort: str) -> None:
        for name in data.draw(st.sets(st.sampled_from(self.names), min_size=1)):
            self._put(name, changed, sort)

    def _put(self, name: str, changed: set[str], sort: str) -> None:
        sort = "" if self.question.is_key else sort
        last = self._last(name)
        if last is not None and last.values is not None and last.sort != sort:
            self.log.append(Record(name, last.sort, None))
        values = dict.fromkeys(FIELDS, 0) if last is None or last.values is None else last.values
        # A field may come back to a value that it had.
        self.log.append(
            Record(name, sort, {**values, **dict.fromkeys(changed, len(self.log) % 3), "at": len(self.log)})
        )

    @rule(data=st.data())
    def remove(self, data: st.DataObject) -> None:
        last = self._last(data.draw(st.sampled_from(self.names)))
        if last is not None and last.values is not None:
            self.log.append(Record(last.name, last.sort, None))

    @rule(cut=st.sampled_from([False, False, False, True]))
    def connect(self, cut: bool) -> None:
        """Begins at another edge, if there is none yet or the socket is cut off."""
        if self.subscription is None or cut:
            self._connect()

    def _connect(self) -> None:
        self.client.lose()
        self.hub = Hub(lambda: self.now, 0.025)
        options = WatchOptions(ALICE, self.interval, delta=self.delta, token=self.client.token)
        self.subscription = self.hub.subscribe(self.client, self.question, options)

    @rule(lag=st.sampled_from([0, 0, 0, 1, 2, 8]), forgetful=st.booleans())
    def poll(self, lag: int, forgetful: bool) -> None:
        if self.subscription is None:
            return
        self.now += 0.2
        self.hub.advance()
        watch = self.subscription.watch
        self.hub.take_due()
        answer = self._answer(watch.query(), max(1, len(self.log) - lag), forgetful) if self.log else None
        if isinstance(answer, RangeResult):
            self.hub.answered(watch, answer)
        elif answer is not None:
            self.hub.unchanged(watch, answer)

    @rule(rows=st.sampled_from([0, 1, 1, 1, 2, 9]))
    def read(self, rows: int) -> None:
        self._read(rows)

    @rule(data=st.data(), changed=st.sets(st.sampled_from(FIELDS), min_size=1), forgetful=st.booleans())
    def resume_behind(self, data: st.DataObject, changed: set[str], forgetful: bool) -> None:
        """Overtakes a round, cuts the socket after its token, and resumes at a replica that is behind the client."""
        if self.subscription is None:
            return
        for _ in "12":
            for name in self.names:
                self._put(name, changed, "s")
            self.poll(0, False)
            self._read(1)
        while self.subscription.has_news and not self._read(1):
            continue
        token = self._resumption()
        if token is not None and token.ahead:
            known = data.draw(st.integers(token.position.offset, token.needed.offset - 1))
            self._connect()
            self.poll(len(self.log) - 1 - known, forgetful)
            self._read(9)

    def _read(self, rows: int) -> bool:
        """Reads so many rows if there are news; returns whether a token came."""
        if self.subscription is None or not self.subscription.has_news:
            return False
        has_token = self.client.read(self.subscription, rows, self.delta)
        if has_token:
            self._check()
        return has_token

    def _resumption(self) -> Resumption | None:
        return resumption_of(mask_of(self.question, (), ALICE), self.client.token)

    @rule()
    def bookmark(self) -> None:
        if self.subscription is not None and (token := self.subscription.bookmark()):
            assert not self.client.collected

            self.client.token = token
            self._check()

    def _check(self) -> None:
        """Checks that each row is a version from the token's offset to `ahead` after it, and that none goes back."""
        token = self._resumption()
        assert token is not None
        low, high = token.position.offset, token.needed.offset
        assert high < len(self.log)
        for name in self.names:
            values = self.client.rows.get(name)
            versions = [record.values for record in self.log[low + 1 : high + 1] if record.name == name]
            if self.is_exact:
                assert values in [self._state(low + 1).get(name), *versions]
            if values is not None:
                assert values == self.log[values["at"]].values
                assert values["at"] >= self.client.newest.get(name, 0)
                self.client.newest[name] = values["at"]

    def _last(self, name: str) -> Record | None:
        return next((record for record in reversed(self.log) if record.name == name), None)

    def _state(self, through: int) -> dict[str, dict[str, int]]:
        rows = {record.name: record.values for record in self.log[:through]}
        return {name: values for name, values in rows.items() if values is not None}

    def _rows(self, through: int) -> dict[StoreKey, KeyState]:
        rows = dict[StoreKey, KeyState]()
        for offset, record in enumerate(self.log[:through]):
            if record.values is None:
                rows.pop(self._key(record), None)
            else:
                row = decode(json.dumps(record.values).encode())
                rows[self._key(record)] = KeyState(self._key(record), Position(1, offset), row, EVERYONE)
        return rows

    def _key(self, record: Record) -> StoreKey:
        return StoreKey(self.question.store.name, "g", record.sort, record.name)

    def _answer(self, query: Query, through: int, forgetful: bool) -> RangeResult | Progress:
        rows, position = self._rows(through), Position(1, through - 1)
        if self.question.is_key:
            return self._answer_of_key(query, rows, through, forgetful)
        first = 0 if query.after is None else query.after.offset + 1
        knows = query.after is not None and not forgetful
        changed = {self._key(record): at for at, record in enumerate(self.log[:through]) if at >= first}
        gone = [KeyState(key, Position(1, at)) for key, at in changed.items() if key not in rows] if knows else []
        if query.whole or not knows:
            ordered = [rows[key] for key in sorted(rows, reverse=self.question.reverse)]
            more, limit = len(ordered) > self.question.limit, self.question.limit
            return RangeResult(query.after, position, True, more, ordered[:limit], gone, knows)
        if not changed:
            return Progress(position)
        newer = [rows[key] for key in changed if key in rows]
        return RangeResult(query.after, position, False, False, newer, gone, True)

    def _answer_of_key(
        self, query: Query, rows: dict[StoreKey, KeyState], through: int, forgetful: bool
    ) -> RangeResult | Progress:
        row, beginning = next(iter(rows.values()), None), Position(1, -1)
        removed = max((at for at, record in enumerate(self.log[:through]) if record.values is None), default=None)
        position = Position(1, through - 1) if row is None else row.position
        if query.after is not None and position <= query.after:
            return Progress()
        if row is not None:
            return RangeResult(beginning, position, True, False, [row], [], True)
        since = position if forgetful or removed is None else Position(1, removed)
        gone = KeyState(StoreKey(self.question.store.name, "g"), since)
        return RangeResult(beginning, position, True, False, [], [gone], True)

    def teardown(self) -> None:
        if not getattr(self, "log", None):
            return
        self._connect()
        assert self.subscription is not None
        for _ in range(4):
            self.poll(0, False)
            while self.subscription.has_news:
                if self.client.read(self.subscription, 2, self.delta):
                    self._check()
        expected = [state for _, state in sorted(self._rows(len(self.log)).items(), reverse=self.question.reverse)]

        assert self.client.rows == {row.key.member: _values(row) for row in expected[: self.question.limit]}


TestRounds = Rounds.TestCase
TestRounds.settings = settings(max_examples=200, stateful_step_count=60)
