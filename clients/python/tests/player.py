"""Plays the Python client in the scenario of all clients; testkit.push_player says how."""

import asyncio
import json
import sys
from collections.abc import Mapping
from typing import Any

from statecast.push.v2.push_pb2 import Step
from statecast_client.push import Need, PushClient, PushRefusedError, Watch

State = dict[str, Any]


def code_of(error: Exception) -> str:
    return error.code if isinstance(error, PushRefusedError) else "lost"


class Watching:
    """A watch, and what it has brought."""

    def __init__(self, watch: Watch) -> None:
        self.watch = watch
        self._changes: list[tuple[str, object]] = []
        self._ended: str | None = None
        self._reader = asyncio.create_task(self._read())

    async def _read(self) -> None:
        try:
            async for change in self.watch:
                came = [(key, row.value) for key, row in change.rows.items()]
                left = [(key, error and error.code) for key, error in change.left.items()]
                self._changes += [("/".join((*change.path, key)), value) for key, value in (*came, *left)]
        except PushRefusedError as error:
            self._ended = error.code

    def state(self) -> State:
        places = self.watch.places.items()
        rows = {"/".join((*path, key)): row.value for path, place in places for key, row in place.rows.items()}
        marks = {name: getattr(self.watch, name) for name in ("current", "resumed", "stale")}
        return {"rows": rows, "changes": self._changes, "ended": self._ended, **marks}


class Player:
    """The client, and its watches by name."""

    def __init__(self) -> None:
        self._headers: Mapping[str, str] | None = None
        self._needs: list[Need] = []
        self._watches: dict[str, Watching] = {}

    async def open(self, address: str, headers: Mapping[str, str]) -> State:
        self._headers = headers
        self._client = await PushClient(address, credentials=self._credentials).__aenter__()
        return {}

    async def credentials(self, headers: Mapping[str, str] | None) -> State:
        self._headers = headers
        return {}

    async def watch(self, name: str, what: State, saved: State | None = None) -> State:
        what = {key: value for key, value in what.items() if key != "delta"}  # this client always asks for deltas
        channel, steps = what.pop("channel", None), [Step(**step) for step in what.pop("steps", ())]
        if channel is not None:
            watch = self._client.watch_channel(channel, resume=saved)
        else:
            watch = self._client.watch(**what, steps=steps, resume=saved)
        self._watches[name] = Watching(watch)
        return {}

    async def unwatch(self, name: str) -> State:
        self._watches.pop(name).watch.unwatch()
        return {}

    async def saved(self, name: str) -> State:
        return {"saved": self._watches[name].watch.saved()}

    async def wake(self) -> State:
        await self._client.check()
        return {}

    async def state(self) -> State:
        reason = self._client.reason
        watches = {name: each.state() for name, each in self._watches.items()}
        return {"reason": reason and code_of(reason), "needs": self._needs, "watches": watches}

    def _credentials(self, need: Need) -> Mapping[str, str]:
        self._needs.append(need)
        if self._headers is None:
            raise RuntimeError("there are no credentials now")
        return self._headers


async def main() -> None:
    player = Player()
    while line := await asyncio.to_thread(sys.stdin.readline):
        command = json.loads(line)
        answer = await getattr(player, command.pop("do"))(**command)
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


asyncio.run(main())
