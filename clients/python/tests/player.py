"""Plays the Python client in the scenario of all clients; testkit.push_player says how."""

import asyncio
import json
import sys
from collections.abc import Mapping
from functools import partial
from typing import Any

from statecast.push.v2.push_pb2 import Step
from statecast_client.push import Need, PushClient, PushRefusedError, Watch

State = dict[str, Any]


class Player:
    """The client, and its watches by name."""

    def __init__(self) -> None:
        self._watches: dict[str, Watch] = {}
        self._readers: dict[str, asyncio.Task[None]] = {}
        self._states: dict[str, State] = {}
        self._needs: list[Need] = []

    async def open(self, address: str, headers: Mapping[str, str]) -> None:
        await self.credentials(headers)
        self._client = await PushClient(address, credentials=self._credentials).__aenter__()

    async def credentials(self, headers: Mapping[str, str] | None) -> None:
        self._headers = headers

    async def watch(self, name: str, what: State, saved: State | None) -> None:
        what.pop("delta", None)  # this client always asks for deltas
        steps = [Step(**step) for step in what.pop("steps", ())]
        begin = self._client.watch_channel if "channel" in what else partial(self._client.watch, steps=steps)
        watch = begin(**what, resume=saved)
        self._watches[name], self._states[name] = watch, {"changes": [], "ended": None}
        self._readers[name] = asyncio.create_task(self._read(watch, self._states[name]))

    async def unwatch(self, name: str) -> None:
        self._watches.pop(name).unwatch()

    async def saved(self, name: str) -> State:
        return {"saved": self._watches[name].saved()}

    async def wake(self) -> None:
        await self._client.check()

    async def state(self) -> State:
        for name, watch in self._watches.items():
            places = watch.places.items()
            rows = {"/".join((*path, key)): row.value for path, place in places for key, row in place.rows.items()}
            marks = {mark: getattr(watch, mark) for mark in ("current", "resumed", "stale")}
            self._states[name] |= {"rows": rows, **marks}
        reason = self._client.reason
        code = reason.code if isinstance(reason, PushRefusedError) else reason and "lost"
        return {"reason": code, "needs": self._needs, "watches": self._states}

    def _credentials(self, need: Need) -> Mapping[str, str]:
        self._needs.append(need)
        if self._headers is None:
            raise RuntimeError("there are no credentials now")
        return self._headers

    async def _read(self, watch: Watch, state: State) -> None:
        try:
            async for change in watch:
                came: list[tuple[str, object]] = [(key, row.value) for key, row in change.rows.items()]
                left = [(key, error and error.code) for key, error in change.left.items()]
                state["changes"] += [["/".join((*change.path, key)), value] for key, value in came + left]
        except PushRefusedError as error:
            state["ended"] = error.code


async def main() -> None:
    player = Player()
    while line := await asyncio.to_thread(sys.stdin.readline):
        command = json.loads(line)
        answer = await getattr(player, command.pop("do"))(**command) or {}
        print(json.dumps(answer), flush=True)  # noqa: T201  a driver reads it


asyncio.run(main())
