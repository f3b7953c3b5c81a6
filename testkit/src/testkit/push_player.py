"""A push client as a process of its own, in any language: the player that every client provides for the scenario.

A player reads commands from stdin, one JSON object a line, and answers each with one JSON object a line on stdout:

| command | answer |
|---|---|
| `{"do":"open","address":"ws://…/v1/stream","headers":{…}}` | `{}`: makes the client; it connects by itself |
| `{"do":"credentials","headers":{…}}` | `{}`: the next credentials; null: there are none, and their function raises |
| `{"do":"watch","name":"a","what":{…},"saved":…}` | `{}`: `what` is a Watch of the contract, without id and token |
| `{"do":"unwatch","name":"a"}` | `{}` |
| `{"do":"saved","name":"a"}` | `{"saved":…}`: the value for `saved` of `watch`, also in another process |
| `{"do":"wake"}` | `{}`: the program is in front again |
| `{"do":"state"}` | `{"reason","needs","watches"}` |

The headers are those that the gateway adds. A client gives them as its credentials, from a function that notes each
need. A client that opens its socket with a ticket sends them with the handshake too, as the gateway would.

In the state, `reason` is the code of the error because of which there is no connection: "lost" if the error has no
code, null while all is well. `needs` are the needs for credentials: `connect`, `expiring`, `expired`. `watches` are by
name:

    {"rows": {"k1": {…}, "m1/k2": {…}},              by path and key, joined by a slash
     "changes": [["k1", {…}], ["k2", null], ["k3", "row_too_large"]],       all since the watch: came, left, in error
     "current": true, "resumed": false, "stale": null, "ended": null}       `ended` is the code of the error

The end of stdin ends a player.
"""

import asyncio
import json
import os
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from testkit.waiting import scaled

CLIENTS = Path(__file__).resolve().parents[3] / "clients"
KOTLIN_CLASSES = os.pathsep.join(str(CLIENTS / "kotlin" / "target" / part) for part in ("test-classes", "*", "libs/*"))
KOTLIN = ("java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", KOTLIN_CLASSES)
"""Runs a class of the Kotlin client or its tests, which `make install` builds."""
PLAYERS: dict[str, Sequence[str]] = {
    "python": (sys.executable, str(CLIENTS / "python" / "tests" / "player.py")),
    "javascript": ("node", "--experimental-websocket", str(CLIENTS / "javascript" / "tests" / "player.js")),
    "kotlin": (*KOTLIN, "io.statecast.push.PlayerKt"),
}
"""The command of each client's player."""
ANSWER_S = 10.0


class Player:
    """A running player."""

    def __init__(self, process: Process) -> None:
        self._process = process

    async def ask(self, do: str, **fields: object) -> dict[str, Any]:
        """Sends a command; returns the answer. Raises AssertionError when the player has ended."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"do": do, **fields}).encode() + b"\n")
        async with asyncio.timeout(scaled(ANSWER_S)):
            line = await self._process.stdout.readline()
        assert line, f"the player has ended at {do!r}: see its standard error"
        answer: dict[str, Any] = json.loads(line)
        return answer

    async def kill(self) -> None:
        """Ends the process at once."""
        if self._process.returncode is None:
            self._process.kill()
        await self._process.communicate()


@asynccontextmanager
async def player(language: str) -> AsyncIterator[Player]:
    """Yields a player for a language, and kills it at the end of the block."""
    process = await asyncio.create_subprocess_exec(*PLAYERS[language], stdin=PIPE, stdout=PIPE, limit=2**24)
    running = Player(process)
    try:
        yield running
    finally:
        await running.kill()
