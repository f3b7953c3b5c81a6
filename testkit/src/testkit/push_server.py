"""A server of the socket `/v1/stream` that is scripted frame by frame."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from websockets.asyncio.server import ServerConnection, serve

from statecast.orders.v1.order_pb2 import Order
from statecast.push.v1.push_pb2 import ClientFrame, ServerFrame
from statecast.push.v1.subscription_pb2 import Changed, Start, Subscribed
from statecast.state.v1.state_pb2 import Position, StateKey
from statecast_client.push.protocol import SUBPROTOCOL

STORE, GROUP = "orders-by-key", "order-1"


class Peer:
    """The server's end of one connection."""

    def __init__(self, socket: ServerConnection) -> None:
        self.socket = socket

    async def next_frame(self) -> ClientFrame:
        """Receives the next frame of the client."""
        return ClientFrame.FromString(await self.socket.recv(decode=False))

    async def admitted(self) -> ClientFrame:
        """Receives the next frame of the client, a subscription to a key, and confirms it."""
        frame = await self.next_frame()
        await self.say(id=frame.id, subscribed=Subscribed(start=Start.START_SNAPSHOT))
        return frame

    async def say(self, **event: object) -> None:
        """Sends a ServerFrame."""
        await self.socket.send(ServerFrame(**event).SerializeToString())  # type: ignore[arg-type]  # the tests name its fields

    async def change(self, offset: int, skipped: int = 0) -> None:
        """Sends a change of the order."""
        position = Position(epoch=7, offset=offset)
        changed = Changed(store=STORE, key=StateKey(group=GROUP), position=position, skipped=skipped)
        changed.row.Pack(Order(order_id=GROUP))
        await self.say(changed=changed)


@asynccontextmanager
async def server(*scripts: Callable[[Peer], Awaitable[None]]) -> AsyncIterator[str]:
    """Runs one script for each connection, the last one again for all that follow; yields the address."""
    left = list(scripts)

    async def handle(socket: ServerConnection) -> None:
        script = left.pop(0) if len(left) > 1 else left[0]
        await script(Peer(socket))

    async with serve(handle, "127.0.0.1", 0, subprotocols=[SUBPROTOCOL]) as running:
        yield f"ws://127.0.0.1:{next(iter(running.sockets)).getsockname()[1]}"
