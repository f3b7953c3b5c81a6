"""Watchers of groups of any store by the Python client, which reconnects by itself; they keep what a screen shows."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from typing_extensions import override

from drivers.gateway_client import Gateway, GatewayClient
from drivers.loop_thread import LoopThread
from drivers.pipeline_models import canonical_row
from drivers.query_board import QueryBoard
from drivers.store_readers import key_text
from statecast.push.v1.range_pb2 import Range, RangeWatched
from statecast.push.v1.subscription_pb2 import Removed
from statecast.state.v1.state_pb2 import Position, StateKey
from statecast_client.push import PushClient, RangeUpdate, Update

MAX_MEMBERS = 1000
INTERVAL_MS = 200


@dataclass
class Screen:
    """What somebody sees of a group, or of a key, who applies all that comes."""

    store: str
    group: str
    members: bool
    rows: dict[str, tuple[str, bytes]] = field(default_factory=dict)
    """By their members: the texts of their keys, and the rows in `canonical` form."""
    has_begun: bool = False
    updates: int = 0
    backwards: list[str] = field(default_factory=list)
    """Updates that were not newer than what was held of their row."""
    _seen: dict[str, Position] = field(default_factory=dict)

    @property
    def shown(self) -> dict[str, bytes]:
        """The rows by the texts of their keys."""
        return dict(self.rows.values())

    def apply(self, update: Update | RangeUpdate) -> None:
        """Takes an update as the client hands it out."""
        self.has_begun = True
        if isinstance(update, RangeWatched):
            self.rows.clear()
            self._seen.clear()
            return
        self.updates += 1
        member = update.key.member
        self._check(member, update.position)
        if isinstance(update, Removed) or not update.HasField("row"):
            self.rows.pop(member, None)
        else:
            self.rows[member] = key_text(update.key), canonical_row(update.row)

    def _check(self, member: str, position: Position) -> None:
        before = self._seen.get(member)
        if before is not None and before.epoch == position.epoch and position.offset <= before.offset:
            self.backwards.append(f"{self.store} {self.group} {member}: {position.offset} after {before.offset}")
        self._seen[member] = position


class StoreWatchers(LoopThread):
    """Screens and a board that are fed through the gateway, on a thread of its own while it is entered.

    There is a socket for the screens of each store, and one for the board.
    """

    def __init__(self, gateway: Gateway, phone: GatewayClient, screens: Sequence[Screen], board: QueryBoard) -> None:
        super().__init__("store-watchers")
        self.screens = screens
        self.board = board
        self.connects = 0
        """How often a socket has been opened, or tried to be."""
        self._gateway, self._phone = gateway, phone

    @property
    def waiting(self) -> list[str]:
        """The screens that show nothing yet. Raises what has ended the watchers, if anything has."""
        self.check()
        screens = [f"{screen.store} {screen.group}" for screen in self.screens if not screen.has_begun]
        return screens + ([] if self.board.has_begun else ["the board"])

    @override
    async def watch_all(self) -> None:
        async with asyncio.TaskGroup() as stores:
            stores.create_task(self._watch_board())
            for store in sorted({screen.store for screen in self.screens}):
                stores.create_task(self._watch([screen for screen in self.screens if screen.store == store]))

    async def _watch_board(self) -> None:
        async with self._client() as client:
            async for update in await client.watch_query(
                "board", self.board.first, self.board.step, interval_ms=INTERVAL_MS
            ):
                self.board.apply(update)

    async def _watch(self, screens: Sequence[Screen]) -> None:
        async with self._client() as client, asyncio.TaskGroup() as tasks:
            for screen in screens:
                tasks.create_task(_feed(client, screen))

    def _client(self) -> PushClient:
        return PushClient(f"{self._gateway.wss}/v1/stream", credentials=self._credentials, tls=self._gateway.tls())

    async def _credentials(self, _: str) -> Mapping[str, str]:
        self.connects += 1
        return self._phone.headers


async def _feed(client: PushClient, screen: Screen) -> None:
    if screen.members:
        watched = Range(store=screen.store, group=screen.group, limit=MAX_MEMBERS)
        async for change in await client.watch_range(watched, interval_ms=INTERVAL_MS):
            screen.apply(change)
    else:
        key = StateKey(group=screen.group)
        async for update in await client.subscribe(screen.store, key, interval_ms=INTERVAL_MS):
            screen.apply(update)
