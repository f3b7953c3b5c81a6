"""One instance from start to drain: brings what its threads learn to the event loop, and ends it in order."""

import asyncio
import time
from dataclasses import dataclass

import structlog

from query_service.cluster.host_factory import End
from query_service.cluster.membership import Membership
from query_service.cluster.peer_memory import Shard
from query_service.cluster.placement import Placement
from query_service.cluster.readiness import Readiness
from query_service.cluster.restore_watch import RestoreWatch
from query_service.cluster.roster import Roster
from query_service.cluster.shard_map import Member
from query_service.cluster.topic_watch import TopicWatch
from query_service.cluster.view import Topic, View
from query_service.lookups.peers import Peers
from query_service.serving.server import Servers
from query_service.serving.status_page import StatusPage
from query_service.storage.changelog import Changelog

_LOOK_S = 0.1
_SEEN_BY_PEERS_S = 0.5
_THREAD_S = 5.0

_log = structlog.get_logger()


class Learning:
    """What other threads call with what they have learned; the event loop gets it."""

    def __init__(self, loop: asyncio.AbstractEventLoop, view: View, roster: Roster, ends: dict[Shard, End]) -> None:
        """Changes the view on the loop. Placement and peers are told once `tell` has been called."""
        self._loop = loop
        self._view = view
        self._roster = roster
        self._ends = ends
        self._placement: Placement | None = None
        self._leaving = False

    def tell(self, placement: Placement) -> None:
        """Tells placement about every change from now on."""
        self._placement = placement

    def leave(self) -> None:
        """Makes the view the one that the others have once this instance is gone, and keeps it so."""
        self._leaving = True
        self._view.shard_map = self._roster.leave()

    def members(self, members: frozenset[Member]) -> None:
        """Takes a member list, from any thread."""
        self._loop.call_soon_threadsafe(self._take_members, members)

    def topics(self, topics: dict[str, Topic]) -> None:
        """Takes the topics, from any thread."""
        self._loop.call_soon_threadsafe(self._take_topics, topics)

    def end(self, topic: str, partition: int, end: int, asked_at: float) -> None:
        """Takes the end of a partition, from any thread."""
        self._ends[topic, partition] = (end, asked_at)
        for host in list(self._view.hosts.values()):
            if host.place.topic == topic and host.place.partition == partition:
                host.saw_end(end, asked_at)

    def _take_members(self, members: frozenset[Member]) -> None:
        if self._leaving:
            return
        shard_map = self._roster.update(members, time.monotonic())
        if shard_map != self._view.shard_map:
            if shard_map.members != self._view.shard_map.members:
                _log.info("members", instances=sorted(member.instance for member in shard_map.members))
            self._view.shard_map = shard_map
            self._changed()

    def _take_topics(self, topics: dict[str, Topic]) -> None:
        self._view.topics = topics
        self._changed()

    def _changed(self) -> None:
        if self._placement is not None:
            self._placement.changed()


@dataclass
class Instance:
    """The running parts, in the order in which they start."""

    view: View
    learning: Learning
    placement: Placement
    readiness: Readiness
    restore_watch: RestoreWatch
    peers: Peers
    servers: Servers
    status_page: StatusPage
    changelog: Changelog
    topic_watch: TopicWatch
    membership: Membership
    drain_s: float

    async def run(self, stop: asyncio.Event) -> bool:
        """Serves until `stop` is set, then drains. Returns False when it had to stop by itself.

        Raises PortInUseError before anything has been started.
        """
        self.status_page.start()
        await self.servers.start()
        self.changelog.start()
        self.topic_watch.start()
        self.membership.start()
        placing = asyncio.create_task(self.placement.run())
        _log.info("started", address=self.view.me.address, shard_address=self.view.me.shard_address)
        try:
            return await self._serve(stop, placing)
        finally:
            await self._drain(placing)

    async def _serve(self, stop: asyncio.Event, placing: "asyncio.Task[None]") -> bool:
        ready = False
        while not stop.is_set():
            self.readiness.look()
            self.restore_watch.look()
            if not ready and self.readiness.reason is None:
                ready = True
                await self.servers.set_serving(serving=True)
                _log.info("ready", partitions=len(self.view.hosts))
            if not self.changelog.alive or placing.done():
                defect = placing.exception() if placing.done() else None
                _log.error("a part has ended; stopping, so that the instance is started again", exc_info=defect)
                return False
            await self.peers.keep(self.view.shard_map.members | self.view.shard_map.departed)
            try:
                async with asyncio.timeout(_LOOK_S):
                    await stop.wait()
            except TimeoutError:
                continue
        return True

    async def _drain(self, placing: "asyncio.Task[None]") -> None:
        _log.info("draining: leaving the group, answering until the others serve everything")
        placing.cancel()
        self.readiness.reason = "draining"
        await self.servers.set_serving(serving=False)
        self.learning.leave()
        await asyncio.to_thread(self.membership.leave, _THREAD_S)
        if self.view.shard_map.members:
            await self._hand_over()
        await self.servers.stop(1.0)
        await asyncio.to_thread(self.topic_watch.stop, _THREAD_S)
        await asyncio.to_thread(self.changelog.stop, _THREAD_S)
        await self.peers.keep(())
        self.status_page.stop()
        _log.info("stopped")

    async def _hand_over(self) -> None:
        try:
            async with asyncio.timeout(self.drain_s):
                await asyncio.sleep(_SEEN_BY_PEERS_S)
                while not await self.placement.handed_over():  # noqa: ASYNC110  the answer lies at the peers
                    await asyncio.sleep(0.1)
        except TimeoutError:
            _log.warning("the others do not serve everything yet; leaving all the same", waited_s=self.drain_s)
