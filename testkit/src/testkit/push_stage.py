"""The stage for the scenario of all clients: an edge as a process, with rows behind it and a player as its client."""

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import yaml
from google.protobuf.json_format import ParseDict
from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp

from statecast.push.v2.channel_pb2 import ChannelRecord
from statecast.push.v2.revocation_pb2 import Revocation
from testkit.ports import free_port
from testkit.push_player import Player, player
from testkit.service_process import ServiceProcess
from testkit.waiting import scaled, wait_until_async
from testkit.ws_edge.edge import SECRET, claims, gateway_headers
from testkit.ws_edge.fake_query_service import FakeQueryService, definitions, edge_stores
from ws_edge.auth.gateway import NOTHING
from ws_edge.channels import REVOCATIONS
from ws_edge.channels.channels import head_key, watch_key
from ws_edge.model.states import StoreKey

CONSUMER = "customer-0001"
SETTINGS: dict[str, object] = {
    "gateway_secret": SECRET,
    "kafka_bootstrap": "127.0.0.1:9",  # nothing is written; channels and revocations are read
    "min_interval_ms": 20,
    "tick_ms": 5,
    "drain_notice_ms": 100,
    "drain_window_ms": 500,
    # A busy machine is not an outage.
    "query_timeout_ms": 20_000,
    "revocation_timeout_ms": 60_000,
}
Fields = Mapping[str, Any]


class Stage:
    """Runs the actions of the scenario: each is a method with its name. `state` returns the player's current state."""

    def __init__(self, language: str, stores: list[Fields], chapter: Fields, directory: Path) -> None:
        self._language = language
        self._access_s: float | None = chapter.get("access_s")
        self._definitions = {each["name"]: dict(each) for each in stores}
        port = free_port()
        self._address = f"ws://127.0.0.1:{port}/v1/stream"
        self._settings = {**SETTINGS, **chapter.get("edge", {}), "port": port}
        self._log = directory / "edge.log"
        self._players = AsyncExitStack()
        self._saved: dict[str, Any] = {}
        self._query = FakeQueryService()
        self._player: Player

    async def open(self) -> None:
        """Starts the query service and an edge, and a player that connects to it."""
        await self.define({})
        settings = {**self._settings, "query_addresses": await self._query.start()}
        self._edge = ServiceProcess("ws_edge", settings, self._log, int(self._settings["port"]))
        await self.start(None)
        await self._play()

    async def close(self) -> None:
        """Ends the player, the edge and the query service."""
        await self._players.aclose()
        self._edge.close()
        await self._query.stop()

    async def state(self) -> dict[str, Any]:
        """Returns the state of the player."""
        return await self._player.ask("state")

    async def define(self, changes: Fields) -> None:
        """Changes fields of store definitions, by store name."""
        for name, fields in changes.items():
            self._definitions[name].update(fields)
        text = yaml.safe_dump({"stores": [*self._definitions.values()]})
        self._query.define(text)
        self._stores = edge_stores(definitions(text))

    async def put(self, rows: Fields) -> None:
        """Writes rows by store, group and key; `""` is the key where a group has one row. Null deletes a row."""
        for store, groups in rows.items():
            for group, members in groups.items():
                for key, row in members.items():
                    self._put(StoreKey(store, group, key, key), row)

    async def grow(self, rows: Fields) -> None:
        """Puts rows with a text of so many bytes."""
        for store, groups in rows.items():
            sized = {
                group: {key: {"text": "x" * size} for key, size in members.items()} for group, members in groups.items()
            }
            await self.put({store: sized})

    async def channel(self, channels: Fields) -> None:
        """Writes channels of the consumer: their watches by id and name. Null deletes a watch."""
        for channel_id, watches in channels.items():
            head = ChannelRecord()
            head.channel.owner = CONSUMER
            head.channel.expires_at.FromSeconds(int(time.time()) + 3600)
            self._query.put(head_key(channel_id), head)
            for name, what in watches.items():
                key, record = watch_key(channel_id, name), {"watch": {"name": name, "watch": what}}
                if what is None:
                    self._query.delete(key)
                else:
                    self._query.put(key, ParseDict(record, ChannelRecord()))

    async def revoke(self, consumer: str) -> None:
        """Ends the access of a consumer."""
        now = Timestamp()
        now.GetCurrentTime()
        self._query.put(StoreKey(REVOCATIONS.name, consumer), Revocation(revoked_at=now))

    async def watch(self, watches: Fields) -> None:
        """Lets the client watch, by name. `saved: true` resumes from the state that was saved under the name."""
        for name, fields in watches.items():
            what = {"interval_ms": 0, "delta": True, **fields} if "channel" not in fields else dict(fields)
            saved = self._saved[name] if what.pop("saved", False) else None
            await self._player.ask("watch", name=name, what=what, saved=saved)

    async def unwatch(self, name: str) -> None:
        """Lets the client end a watch."""
        await self._player.ask("unwatch", name=name)

    async def save(self, name: str) -> None:
        """Keeps the rows and tokens of a watch."""
        self._saved[name] = (await self._player.ask("saved", name=name))["saved"]

    async def restart(self, _: object) -> None:
        """Kills the process of the client, and starts another one."""
        await self._player.kill()
        await self._play()

    async def wake(self, _: object) -> None:
        """Tells the client that it is in front again."""
        await self._player.ask("wake")

    async def access(self, seconds: float | None) -> None:
        """Gives the client credentials that expire after so many seconds, or none from now on."""
        headers = None if seconds is None else self._headers(seconds)
        await self._player.ask("credentials", headers=headers)

    async def start(self, _: object) -> None:
        """Starts an edge at the address."""
        self._edge.start()
        await asyncio.to_thread(self._edge.wait_ready)

    async def kill(self, _: object) -> None:
        """Kills the edge, as `kill -9` does."""
        self._edge.kill()

    async def drain(self, _: object) -> None:
        """Sends SIGTERM to the edge, and waits until it has ended."""
        assert await asyncio.to_thread(self._edge.stop) == 0

    async def freeze(self, _: object) -> None:
        """Suspends the process of the edge (SIGSTOP)."""
        self._edge.pause()

    async def thaw(self, _: object) -> None:
        """Lets a frozen edge go on."""
        self._edge.resume()

    async def lost(self, seconds: float) -> None:
        """Waits until the client has noticed, within so many seconds, that its connection is dead."""

        async def is_lost() -> bool:
            return (await self.state())["reason"] is not None

        await wait_until_async(is_lost, "the client does not notice that the line is dead", seconds)

    async def stale(self, names: list[str]) -> None:
        """Waits until the client reports that the rows of these watches may be out of date."""

        async def are_stale() -> bool:
            watches = (await self.state())["watches"]
            return all(watches[name]["stale"] is not None for name in names)

        await wait_until_async(are_stale, f"the client does not say that {names} are out of date")

    async def asked(self, need: str) -> None:
        """Waits until the client has asked for credentials with this need."""

        async def has_asked() -> bool:
            return need in (await self.state())["needs"]

        await wait_until_async(has_asked, f"the client has not asked for credentials: {need}")

    async def _play(self) -> None:
        self._player = await self._players.enter_async_context(player(self._language))
        await self._player.ask(
            "open", address=self._address, headers=self._headers(self._access_s and scaled(self._access_s))
        )

    def _put(self, key: StoreKey, row: Any) -> None:
        key = key if key.member else StoreKey(key.store, key.group)
        if row is None:
            self._query.delete(key)
        else:
            self._query.put(key, ParseDict(row, self._message(key.store)))

    def _message(self, store: str) -> Message:
        return self._stores[store].message()

    def _headers(self, access_s: float | None) -> dict[str, str]:
        token = NOTHING if access_s is None else claims(exp=time.time() + access_s)
        return gateway_headers(SECRET, CONSUMER, "customers", token)


@asynccontextmanager
async def stage(language: str, stores: list[Fields], chapter: Fields, directory: Path) -> AsyncIterator[Stage]:
    """Yields a stage for the client of a language, with stores in the form of a stores file.

    In the chapter, `edge` has more settings of the edge, and `access_s` is the validity of the first credentials.
    """
    running = Stage(language, stores, chapter, directory)
    try:
        await running.open()
        yield running
    finally:
        await running.close()
