"""Channels and their watches, made by calls."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from httpx import AsyncClient

Document = dict[str, Any]


def order(order_id: str, interval_ms: int = 20) -> Document:
    """Returns a watch of an order."""
    return {"store": "orders-by-key", "group": order_id, "interval_ms": interval_ms}


def orders_of(customer: str, interval_ms: int = 20, **more: Any) -> Document:
    """Returns a watch of the orders of a customer, or of a part of them."""
    return {"store": "orders-by-customer", "group": customer, "interval_ms": interval_ms} | more


async def channel_of(client: AsyncClient, **watches: Document) -> str:
    """Returns the identifier of a new channel with the watches, by name."""
    channel = str((await client.post("/v1/channels")).json()["channel"])
    for name, watch in watches.items():
        await put(client, channel, name, watch)
    return channel


async def put(client: AsyncClient, channel: str, name: str, watch: Document) -> None:
    """Puts a watch into a channel; raises HTTPStatusError when it is refused."""
    answer = await client.put(f"/v1/channels/{channel}/watches/{name}", json={"watch": watch})
    answer.raise_for_status()
