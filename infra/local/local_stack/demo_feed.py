"""Feeds the board: one user's orders over a WebSocket, found by reading the customers' ranges again and again."""

import asyncio
import json
from collections.abc import Callable, Sequence
from typing import Any

from websockets.asyncio.client import ClientConnection

from local_stack.demo_board import Board, read_shards, read_update
from local_stack.gateway_client import UNREACHABLE, GatewayClient, watch_order

INTERVAL_MS = 100
RANGE_EVERY_S = 2.0
SHARDS_EVERY_S = 1.0
RETRY_S = 0.5
ORDERS_PER_CUSTOMER = "20"


class DemoFeed:
    """Watches the newest orders of some customers as one user. A lost socket is opened again and goes on from the
    positions that were seen; `clock` gives unix seconds.
    """

    def __init__(
        self, client: GatewayClient, name: str, customers: Sequence[str], board: Board, clock: Callable[[], float]
    ) -> None:
        self._client = client
        self._name = name
        self._customers = customers
        self._board = board
        self._clock = clock
        self._owners: dict[str, str] = {}
        self._positions: dict[str, object] = {}

    async def run(self) -> None:
        """Feeds the board until it is cancelled."""
        while True:
            try:
                async with self._client.order_updates() as socket, asyncio.TaskGroup() as tasks:
                    tasks.create_task(self._follow_ranges(socket))
                    tasks.create_task(self._receive(socket))
            except* UNREACHABLE as problems:
                self._board.problem = f"{self._name}: {problems.exceptions[0]}"
            await asyncio.sleep(RETRY_S)

    async def _follow_ranges(self, socket: ClientConnection) -> None:
        watched: set[str] = set()
        while True:
            for customer in self._customers:
                path = f"/v1/stores/orders-by-customer/groups/{customer}"
                page = await self._client.get(path, limit=ORDERS_PER_CUSTOMER, reverse="true")
                for order_id in (state["key"]["member"] for state in page["states"]):
                    if order_id not in watched:
                        watched.add(order_id)
                        self._owners[order_id] = customer
                        await watch_order(socket, order_id, INTERVAL_MS, self._positions.get(order_id))
            await asyncio.sleep(RANGE_EVERY_S)

    async def _receive(self, socket: ClientConnection) -> None:
        async for text in socket:
            self._take(json.loads(text))
        raise ConnectionResetError("the socket was closed")

    def _take(self, frame: dict[str, Any]) -> None:
        if frame["type"] == "error":
            self._board.problem = f"{self._name}: {frame['error'].get('message')}"
            return
        order_id = frame["data"]["order_id"]
        update = read_update(frame, snapshot=order_id not in self._positions)
        self._positions[order_id] = frame.get("position")
        self._board.problem = ""
        self._board.apply(update, self._owners.get(order_id, ""), self._name, self._clock())


async def follow_shards(client: GatewayClient, board: Board) -> None:
    """Keeps the board's shard map fresh until it is cancelled. Only staff may read it."""
    while True:
        try:
            board.shards = read_shards(await client.get("/v1/shards"))
        except UNREACHABLE as problem:
            board.problem = f"shards: {problem}"
        await asyncio.sleep(SHARDS_EVERY_S)
