"""Keeps the shard map fresh, and knows whether the query service answers at all."""

import asyncio

import structlog

from ws_edge.errors import RequestError
from ws_edge.querying.query_client import QueryClient

RETRY_S = 0.25
"""The shortest time between two questions for the map, so that failing polls cannot make a storm of them."""

log = structlog.get_logger(__name__)


class ShardWatch:
    """Asks for the shard map in an interval, and at once when an instance has failed."""

    def __init__(self, client: QueryClient, interval: float) -> None:
        self._client = client
        self._interval = interval
        self._wanted = asyncio.Event()
        self.reason: str | None = "the query service has not answered yet"
        """Why the query service cannot be used; None while it answers."""
        client.on_failure = self._wanted.set

    async def run(self) -> None:
        """Goes on until it is cancelled."""
        while True:
            self._wanted.clear()
            await self._refresh()
            await asyncio.sleep(RETRY_S)
            try:
                async with asyncio.timeout(RETRY_S if self.reason else self._interval):
                    await self._wanted.wait()
            except TimeoutError:
                continue

    async def _refresh(self) -> None:
        try:
            await self._client.list_shards()
        except RequestError as error:
            if self.reason is None:
                log.warning("query_service_lost", reason=str(error))
            self.reason = str(error)
        else:
            if self.reason is not None:
                log.info("query_service_found")
            self.reason = None
