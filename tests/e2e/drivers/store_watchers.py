"""Watchers of groups of any store by the Python client, which reconnects by itself; they count the changes."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from google.protobuf.message import Message
from typing_extensions import override

from drivers.gateway_client import Gateway, GatewayClient
from drivers.loop_thread import LoopThread
from drivers.pipeline_models import canonical_json
from drivers.query_board import QueryBoard
from drivers.store_readers import key_text
from statecast.state.v1.state_pb2 import StateKey
from statecast_client.push import Change, PushClient, Watch
from statecast_client.tokens import position_in

MAX_MEMBERS = 800
INTERVAL_MS = 0
"""All screens fit into the rows of one consumer at one edge: intervals between 0 and a second count more."""


@dataclass
class Screen:
    """The rows of a group, as its watcher sees them."""

    store: str
    group: str
    message: type[Message]
    updates: int = 0
    backwards: list[str] = field(default_factory=list)
    """Changes to an older offset than that of the rows before."""
    _watch: Watch | None = None
    _offset: int = -1

    @property
    def has_begun(self) -> bool:
        """Whether everything has come once."""
        return self._watch is not None and self._watch.token != ""

    @property
    def shown(self) -> dict[str, bytes]:
        """The rows in `canonical` form, by the texts of their keys; copied, because another thread adds rows."""
        rows = [*self._watch.rows.values()] if self._watch else []
        keys = ((StateKey(group=self.group, sort=row.sort, member=row.key), row.value) for row in rows)
        return {key_text(key): canonical_json(value, self.message) for key, value in keys}

    async def feed(self, client: PushClient) -> None:
        """Watches until it is cancelled."""
        self._watch = client.watch(self.store, self.group, limit=MAX_MEMBERS, interval_ms=INTERVAL_MS)
        async for change in self._watch:
            self._apply(change)

    def _apply(self, change: Change) -> None:
        self.updates += 1
        offset, _ = position_in(change.token)
        if offset < self._offset:
            self.backwards.append(f"{self.store} {self.group}: {offset} after {self._offset}")
        self._offset = offset


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
        """Returns the screens that show nothing yet. Raises the error that has ended the watchers, if any."""
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
            async for _ in self.board.begin(client, INTERVAL_MS):
                continue  # the board shows the rows of the watch

    async def _watch(self, screens: Sequence[Screen]) -> None:
        async with self._client() as client, asyncio.TaskGroup() as tasks:
            for screen in screens:
                tasks.create_task(screen.feed(client))

    def _client(self) -> PushClient:
        return PushClient(f"{self._gateway.wss}/v1/stream", credentials=self._credentials, tls=self._gateway.tls())

    async def _credentials(self, _: str) -> Mapping[str, str]:
        self.connects += 1
        return self._phone.headers
