"""Many watchers at once, who reconnect when their socket breaks and remember everything that they were shown."""

import asyncio
import json
import threading
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Self

from websockets.asyncio.client import connect
from websockets.exceptions import WebSocketException

from drivers.gateway_client import Frame, Gateway, GatewayClient, watch_request

ORDERS_PER_SOCKET = 25
RECONNECT_AFTER_S = 0.2


@dataclass
class OrderWatchers:
    """Watches orders through the gateway on a thread of its own while it is entered.

    `ages_ms` holds, for every frame after the first of its order, the milliseconds from the commit at the source.
    """

    gateway: Gateway
    phone: GatewayClient
    order_ids: Sequence[str]
    interval_ms: int = 200
    frames: dict[str, list[Frame]] = field(default_factory=lambda: defaultdict(list))
    connects: int = 0
    ages_ms: list[float] = field(default_factory=list)

    def __enter__(self) -> Self:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="watchers")
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._task.cancel)
        self._thread.join()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._task = self._loop.create_task(self._watch_all())
        try:
            self._loop.run_until_complete(self._task)
        except asyncio.CancelledError:
            return
        finally:
            self._loop.close()

    async def _watch_all(self) -> None:
        starts = range(0, len(self.order_ids), ORDERS_PER_SOCKET)
        shares = [self.order_ids[start : start + ORDERS_PER_SOCKET] for start in starts]
        async with asyncio.TaskGroup() as group:
            for share in shares:
                group.create_task(self._keep_watching(share))

    async def _keep_watching(self, order_ids: Sequence[str]) -> None:
        while True:
            try:
                await self._watch(order_ids)
            except (OSError, WebSocketException):
                await asyncio.sleep(RECONNECT_AFTER_S)

    async def _watch(self, order_ids: Sequence[str]) -> None:
        url = f"{self.gateway.wss}/update/orders"
        async with connect(
            url, additional_headers=self.phone.headers, ssl=self.gateway.tls(), compression=None
        ) as socket:
            self.connects += 1
            for order_id in order_ids:
                await socket.send(json.dumps(self._request(order_id)))
            async for text in socket:
                frame = json.loads(text)
                if frame["type"] == "order_status_update":
                    self._keep(frame)

    def _keep(self, frame: Frame) -> None:
        received = time.time()
        frames = self.frames[frame["data"]["order_id"]]
        if frames and "commit_time" in frame:
            committed = datetime.fromisoformat(frame["commit_time"]).timestamp()
            self.ages_ms.append((received - committed) * 1000)
        frames.append(frame)

    def _request(self, order_id: str) -> Frame:
        token = self.frames[order_id][-1]["token"] if order_id in self.frames else ""
        return watch_request(order_id, self.interval_ms, token)
