"""Both ends of a channel: the calls that fill it, and the socket that is attached to it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from websockets.asyncio.client import ClientConnection

if TYPE_CHECKING:
    from httpx import AsyncClient

Document = dict[str, Any]


def order(order_id: str, interval_ms: int = 20) -> Document:
    """A subscription of an order."""
    return {"store": "orders-by-key", "key": {"group": order_id}, "interval_ms": interval_ms}


def orders_of(customer: str, interval_ms: int = 20, **more: Any) -> Document:
    """A subscription of the orders of a customer, or of a range of them."""
    return {"range": {"store": "orders-by-customer", "group": customer} | more, "interval_ms": interval_ms}


async def channel_of(client: AsyncClient, *subscriptions: Document) -> str:
    """The path of a new channel that has the subscriptions."""
    path = f"/v1/channels/{(await client.post('/v1/channels')).json()['channel']}"
    if subscriptions:
        await add(client, path, *subscriptions)
    return path


async def add(client: AsyncClient, path: str, *subscriptions: Document) -> None:
    """Adds the subscriptions to a channel; raises HTTPStatusError when they are refused."""
    answer = await client.post(f"{path}/subscriptions", json={"subscriptions": subscriptions})
    answer.raise_for_status()


async def begin(socket: ClientConnection, **begin: Any) -> Document:
    """Begins on a socket that has just been opened; returns its `channel_attached` event."""
    attached: Document = (await next_frame(socket, "channel_attached"))["channel_attached"]
    await socket.send(json.dumps({"id": "b", "begin": begin}))
    return attached


async def next_frame(socket: ClientConnection, *kinds: str) -> Document:
    """The next frame, or the next with an event of one of the kinds."""
    while True:
        frame: Document = json.loads(await socket.recv())
        if not kinds or set(kinds) & set(frame):
            return frame
