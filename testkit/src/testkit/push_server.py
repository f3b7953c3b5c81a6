"""A server of the socket `/v1/stream` that is scripted frame by frame."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from websockets.asyncio.server import ServerConnection, serve

from statecast_client.push.protocol import SUBPROTOCOL

STORE, GROUP = "orders-by-key", "order-1"


class Peer:
    """The server's end of one connection."""

    def __init__(self, socket: ServerConnection) -> None:
        self.socket = socket

    async def next_frame(self) -> dict[str, Any]:
        """Receives the next frame of the client."""
        frame: dict[str, Any] = json.loads(await self.socket.recv())
        return frame

    async def admitted(self) -> dict[str, Any]:
        """Receives a frame with one watch, of a key, and begins it; returns the watch."""
        watch: dict[str, Any] = (await self.next_frame())["watch"][0]
        await self.say(id=watch["id"], watching={"resumed": True} if "token" in watch else {})
        return watch

    async def say(self, **frame: object) -> None:
        """Sends a frame."""
        await self.socket.send(json.dumps(frame))

    async def change(self, offset: int, number: int = 1, skipped: int = 0) -> None:
        """Sends a version of the order to the watch of a number, with its offset as token and value."""
        row = {"row": {"order_id": GROUP, "offset": offset}, "skipped": skipped}
        await self.say(id=number, rows=[row], token=str(offset))


@asynccontextmanager
async def server(*scripts: Callable[[Peer], Awaitable[None]], greets: bool = True) -> AsyncIterator[str]:
    """Runs one script for each connection, the last one again for all that follow; yields the address.

    Before the script it sends `hello`, if it greets.
    """
    left = list(scripts)

    async def handle(socket: ServerConnection) -> None:
        script = left.pop(0) if len(left) > 1 else left[0]
        peer = Peer(socket)
        if greets:
            await peer.say(hello={"protocol": 2})
        await script(peer)

    async with serve(handle, "127.0.0.1", 0, subprotocols=[SUBPROTOCOL]) as running:
        yield f"ws://127.0.0.1:{next(iter(running.sockets)).getsockname()[1]}"
