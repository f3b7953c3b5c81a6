"""Holds what the shard map gives this instance: opens partitions, and lets go of them when others serve them."""

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from typing import Protocol

import structlog

from query_service.cluster.host_factory import End
from query_service.cluster.peer_memory import Shard
from query_service.cluster.shard_map import Member
from query_service.cluster.view import Topic, View
from query_service.errors import StoreFailedError
from query_service.storage.partition_host import PartitionHost

_HANDOVER_S = 0.5

_log = structlog.get_logger()

ServedBy = Callable[[Member], Awaitable[frozenset[Shard]]]


class Factory(Protocol):
    """What opens partitions; see HostFactory."""

    def open(self, store: str, topic: Topic, partition: int, end: End) -> PartitionHost:
        """See HostFactory."""


class Reading(Protocol):
    """What reads the log; see Changelog."""

    def follow(self, host: PartitionHost) -> None:
        """See Changelog."""

    def unfollow(self, host: PartitionHost) -> "Future[None]":
        """See Changelog."""


class Placement:
    """One task on the event loop.

    A partition that moves away is kept, and still answers, until all its new holders serve it; so a partition is
    always served by somebody who was already serving.
    """

    def __init__(
        self, view: View, factory: Factory, changelog: Reading, ends: dict[Shard, End], served_by: ServedBy
    ) -> None:
        """`ends` is kept up to date by the topic watch, by topic and partition; `served_by` asks a peer."""
        self._view = view
        self._factory = factory
        self._changelog = changelog
        self._ends = ends
        self._served_by = served_by
        self._changed = asyncio.Event()
        self.settled = False

    def changed(self) -> None:
        """Says that the members or the topics have changed."""
        self._changed.set()

    async def run(self) -> None:
        """Runs until it is cancelled."""
        while True:
            await self.settle()
            try:
                async with asyncio.timeout(_HANDOVER_S):
                    await self._changed.wait()
            except TimeoutError:
                continue
            self._changed.clear()

    async def handed_over(self) -> bool:
        """Whether every partition that this instance holds beyond its share is served by all its holders.

        The last instance of a store's generation has nobody to hand it over to.
        """
        held_elsewhere = {shard for shard in self._surplus() if self._view.shard_map.holders(*shard)}
        return not await self._not_handed_over(frozenset(held_elsewhere))

    async def settle(self) -> None:
        """Opens and closes what the view asks for now; what cannot be done yet is left to the next time."""
        view = self._view
        wanted = view.wanted()
        for shard, host in list(view.hosts.items()):
            topic = view.topics[host.place.topic]
            if topic.topic_id != host.place.identity.topic_id:
                _log.warning("the topic was made anew; the store is rebuilt", store=shard[0], partition=shard[1])
                await self._close(shard)
        for shard in sorted(wanted - view.hosts.keys()):
            await self._open(shard)
        self.settled = bool(wanted) and wanted <= view.hosts.keys()
        surplus = self._surplus()
        if surplus:
            for shard in surplus - await self._not_handed_over(surplus):
                await self._close(shard)

    async def _open(self, shard: Shard) -> None:
        store, partition = shard
        topic = self._view.topic(store)
        end = self._ends.get((topic.name, partition))
        if end is None:
            return
        try:
            host = await asyncio.to_thread(self._factory.open, store, topic, partition, end)
        except StoreFailedError as error:
            _log.error("the partition cannot be opened; it is tried again", reason=str(error), store=store)
            return
        self._view.hosts[shard] = host
        self._changelog.follow(host)
        _log.info("holding", store=store, partition=partition, from_offset=host.store.next_offset, end_offset=end[0])

    async def _close(self, shard: Shard) -> None:
        host = self._view.hosts.pop(shard)
        await asyncio.wrap_future(self._changelog.unfollow(host))
        _log.info("released", store=shard[0], partition=shard[1])

    def _surplus(self) -> frozenset[Shard]:
        return frozenset(self._view.hosts) - self._view.wanted()

    async def _not_handed_over(self, surplus: frozenset[Shard]) -> frozenset[Shard]:
        holders = {shard: self._view.shard_map.holders(*shard) for shard in surplus}
        asked = sorted({member for members in holders.values() for member in members} - {self._view.me})
        served = dict(zip(asked, await asyncio.gather(*map(self._served_by, asked)), strict=True))
        return frozenset(
            shard
            for shard, members in holders.items()
            if not members or any(shard not in served.get(member, ()) for member in members)
        )
