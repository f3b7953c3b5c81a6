"""Sockets with the same watch share their frames, and each gets the same rows as if it were alone."""

import json
from contextlib import AsyncExitStack
from dataclasses import replace
from random import Random
from typing import Any

import pytest
from google.protobuf.struct_pb2 import Value

from statecast.json_documents import document_of
from testkit.ws_edge.answers import at
from testkit.ws_edge.one_socket import OneSocket, settle
from testkit.ws_edge.stream import StreamClient
from ws_edge.codec.frames import ENVELOPE_BYTES
from ws_edge.model.authorization import EVERYONE, Consumer, OwnerRule
from ws_edge.model.json_rows import decode
from ws_edge.model.private_fields import NOBODY, PrivateField, PrivateRow
from ws_edge.model.questions import Question
from ws_edge.model.states import KeyState, StoreKey, UnreadableRow
from ws_edge.model.stores import Store
from ws_edge.upstream.queries import Progress, Query, RangeResult
from ws_edge.watches.hub import Hub
from ws_edge.watches.token import mask_of, resumption_of
from ws_edge.watches.watch import Watch, WatchStatus

OPEN = Store("boards", Value, True, OwnerRule(None, everyone=True))
OWNED = Store("bets", Value, True, OwnerRule("owner"))
HIDING = Store("hands", Value, True, OwnerRule(None, everyone=True), private=(PrivateField(("hand",), "owner"),))
CONSUMERS = [Consumer(name, name, staff=name == "staff") for name in ("alice", "alice", "bob", "staff")]
NAMES = "wxyz"
FIELDS = ("a", "owner")
FEW = {"fields": FIELDS}
VIEWS: list[dict[str, Any]] = [{}, {"delta": True}, FEW, {"delta": True, **FEW}, {"times": True}]
MAX_FRAME_BYTES = 131_072
PAD = "x" * (MAX_FRAME_BYTES - ENVELOPE_BYTES)
"""A row with it is too large for a frame."""
LIMIT = 10
EVENTS = 150


class Table:
    """The changing rows of one group, and a query service's answers about them."""

    def __init__(self, store: Store, random: Random) -> None:
        self.store, self.random = store, random
        self.log: list[KeyState] = []

    def change(self) -> None:
        """Changes some fields of a row, gives it to somebody else, removes it, or makes it unreadable."""
        owner: Any
        name, offset, chance = self.random.choice(NAMES), len(self.log), self.random.random()
        row: Value | UnreadableRow | None = None
        owner = EVERYONE if self.store.rule.everyone and chance < 0.1 else ""
        if chance < 0.1:
            row = UnreadableRow("it is cut off")
        elif chance < 0.9:
            last = self.rows().get(name)
            values = {"owner": "alice", "a": 0, "hand": 0, "pad": ""} if last is None else dict(last)
            values[self.random.choice(["a", "hand"])] = offset
            values["pad"] = PAD if self.random.random() < 0.1 else ""
            if self.random.random() < 0.2:
                values["owner"] = self.random.choice(["alice", "bob"])
            row = decode(json.dumps(values).encode())
            owner = EVERYONE if self.store.rule.everyone else values["owner"]
        self.log.append(
            KeyState(StoreKey(self.store.name, "g", "", name), at(offset), row, owner, commit_ns=1 + offset)
        )

    def rows(self, through: int | None = None) -> dict[str, dict[str, Any]]:
        """Returns all rows, whole, as of an offset or now."""
        states = {state.key.member: state for state in self.log[: None if through is None else through + 1]}
        return {name: document_of(state.row) for name, state in states.items() if isinstance(state.row, Value)}

    def seen(self, consumer: Consumer, fields: tuple[str, ...], through: int | None = None) -> dict[str, Any]:
        """Returns the rows that a consumer has to see, as of an offset or now."""
        seen = {}
        for name, row in self.rows(through).items():
            is_own = consumer.staff or row["owner"] == consumer.id
            if (self.store is OWNED and not is_own) or (row["pad"] and not fields):
                continue
            hidden = {"hand"} if self.store is HIDING and not is_own else set()
            seen[name] = {each: row[each] for each in row if each not in hidden and (not fields or each in fields)}
        return seen

    def answer(self, query: Query) -> RangeResult | Progress:
        """Returns the rows that are newer than the query's position, or the progress when there are none."""
        newest = {state.key.member: state for state in self.log}
        first = 0 if query.after is None or query.whole else query.after.offset + 1
        states = [self._shown(state) for state in newest.values() if state.position.offset >= first]
        if not states and query.after is not None:
            return Progress(at(len(self.log) - 1))
        rows = [state for state in states if state.row is not None]
        gone = [state for state in states if state.row is None]
        whole = query.after is None or query.whole
        return RangeResult(query.after, at(len(self.log) - 1), whole, False, rows, gone, query.after is not None)

    def _shown(self, state: KeyState) -> KeyState:
        if self.store is not HIDING or not isinstance(state.row, Value):
            return state
        private = PrivateRow(state.row, self.store.private)
        return replace(state, row=private.seen_by(NOBODY), private=private)


class Phone:
    """A socket of a consumer, and the views of its watches by their ids."""

    def __init__(self, socket: OneSocket, table: Table) -> None:
        self.socket, self.client = socket, StreamClient(socket)  # type: ignore[arg-type]  # it is one to a client
        self.consumer, self.table = socket.caller.consumer, table
        self.views: dict[int, dict[str, Any]] = {}
        self.last = 0

    async def act(self, event: str, random: Random) -> None:
        """Stops reading, reads on, begins another watch, or replaces its oldest watch."""
        interval_ms = random.choice([0, 100, 1000])
        if event == "pause":
            self.socket.reads.clear()
        if event in ("read", "go on"):
            self.socket.reads.set()
            await settle()
            await self.read()
        if event == "watch" and len(self.views) < 3:
            await self.client.say(watch=[self._asked(random.choice(VIEWS), interval_ms)])
        if event == "go on" and self.views:
            await self._go_on(interval_ms)

    async def _go_on(self, interval_ms: int) -> None:
        """Ends the oldest watch, and goes on from its token with another one."""
        ended = min(self.views)
        view, token = self.views.pop(ended), self.client.tokens.get((ended, ""), "")
        asked = self._asked(view, interval_ms)
        self.client.rows[self.last, ""] = dict(self.client.rows.get((ended, ""), {}))
        await self.client.say(unwatch=[ended], watch=[asked | {"token": token}])

    async def read(self) -> None:
        """Takes all received frames, and checks after each that the rows are those of its token."""
        while self.socket.unread:
            frame = await self.client.next()
            number = frame.get("id")
            if number not in self.views:
                continue
            view = self.views[number]
            times = "times" in view and self.table.store.shows_changes(self.consumer)
            assert all(("commit_time" in row) == times for row in frame.get("rows", ()) if "row" in row)
            if "token" in frame:
                fields = view.get("fields", ())
                question = Question(self.table.store, "g", limit=LIMIT)
                token = resumption_of(mask_of(question, fields, self.consumer), frame["token"])
                assert token is not None
                if not token.ahead:
                    seen = self.table.seen(self.consumer, fields, token.position.offset)
                    assert self.client.rows[number, ""] == seen

    def _asked(self, view: dict[str, Any], interval_ms: int) -> dict[str, Any]:
        self.last += 1
        self.views[self.last] = view
        store = self.table.store.name
        return {"id": self.last, "store": store, "group": "g", "limit": LIMIT, "interval_ms": interval_ms} | view


async def poll(hub: Hub, held: dict[Watch, None], table: Table) -> None:
    """Answers all questions that are due or held in a long poll."""
    held.update(dict.fromkeys(hub.take_due()))
    for watch in [each for each in held if each.status in (WatchStatus.ASKED, WatchStatus.HELD)]:
        answer = table.answer(watch.query())
        if isinstance(answer, Progress):
            hub.unchanged(watch, answer)
        else:
            hub.answered(watch, answer)
    await settle()


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("store", [OPEN, OWNED, HIDING], ids=lambda store: store.name)
async def test_whatever_happens_each_client_has_the_rows_that_it_is_to_see(store: Store, seed: int) -> None:
    random, held = Random(seed), dict[Watch, None]()
    table = Table(store, random)
    async with AsyncExitStack() as stack:
        first = OneSocket(store, consumer=CONSUMERS[0], max_sent_frame_bytes=MAX_FRAME_BYTES)
        more: dict[str, Any] = {"beside": first, "max_sent_frame_bytes": MAX_FRAME_BYTES}
        sockets = [first, *(OneSocket(store, consumer=each, **more) for each in CONSUMERS[1:])]
        phones = [Phone(await stack.enter_async_context(socket), table) for socket in sockets]
        table.change()
        for _ in range(EVENTS):
            event = random.choice(["change"] * 3 + ["poll"] * 3 + ["pause", "read", "read", "watch", "go on"])
            if event == "change":
                table.change()
            elif event == "poll":
                await first.passes(1)
                await poll(first.hub, held, table)
            else:
                await random.choice(phones).act(event, random)
        for phone in phones:
            phone.socket.reads.set()
        for _ in range(4):
            await first.passes(1)
            await poll(first.hub, held, table)
            for phone in phones:
                await phone.read()

        for phone in phones:
            for number, view in phone.views.items():
                assert phone.client.rows[number, ""] == table.seen(phone.consumer, view.get("fields", ()))
