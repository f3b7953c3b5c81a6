"""One instance from start to drain: starts its parts in order, watches over them, and stops them in order."""

import asyncio
from contextlib import suppress
from dataclasses import dataclass

import structlog

from query_service.cluster.membership import Membership
from query_service.cluster.placement import Placement
from query_service.cluster.readiness import Readiness
from query_service.cluster.restore_watch import RestoreWatch
from query_service.cluster.topic_watch import TopicWatch
from query_service.cluster.view import ClusterEvents, View
from query_service.serving.peers import Peers
from query_service.serving.server import Servers
from query_service.storage.changelog import Changelog
from statecast_service.health import HealthServer

_UPDATE_S = 0.1
_SEEN_BY_PEERS_S = 0.5
_THREAD_S = 5.0

_log = structlog.get_logger()


@dataclass
class Instance:
    """The running parts, in the order in which they start."""

    view: View
    events: ClusterEvents
    placement: Placement
    readiness: Readiness
    restore_watch: RestoreWatch
    peers: Peers
    servers: Servers
    health: HealthServer
    changelog: Changelog
    topic_watch: TopicWatch
    membership: Membership
    drain_s: float

    async def run(self, stop: asyncio.Event) -> bool:
        """Serves until `stop` is set, then drains; False if it ended by itself. Raises PortInUseError at the start."""
        self.health.start()
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
            self.readiness.update()
            self.restore_watch.update()
            if not ready and self.readiness.reason is None:
                ready = True
                await self.servers.set_serving(serving=True)
                _log.info("ready", partitions=len(self.view.replicas))
            if not self.changelog.is_alive() or placing.done():
                defect = placing.exception() if placing.done() else None
                _log.error("a part has ended; stopping, so that the instance is started again", exc_info=defect)
                return False
            await self.peers.keep(self.view.shard_map.members | self.view.shard_map.departed)
            with suppress(TimeoutError):
                await asyncio.wait_for(stop.wait(), _UPDATE_S)
        return True

    async def _drain(self, placing: "asyncio.Task[None]") -> None:
        _log.info("draining: leaving the group, answering until the others serve everything")
        placing.cancel()
        self.readiness.reason = "draining"
        await self.servers.set_serving(serving=False)
        self.events.leave()
        await asyncio.to_thread(self.membership.stop, _THREAD_S)
        if self.view.shard_map.members:
            await self._hand_over()
        await self.servers.stop(1.0)
        await asyncio.to_thread(self.topic_watch.stop, _THREAD_S)
        await asyncio.to_thread(self.changelog.stop, _THREAD_S)
        await self.peers.keep(())
        self.health.stop()
        _log.info("stopped")

    async def _hand_over(self) -> None:
        try:
            async with asyncio.timeout(self.drain_s):
                await asyncio.sleep(_SEEN_BY_PEERS_S)
                while not await self.placement.handed_over():  # noqa: ASYNC110  the answer lies at the peers
                    await asyncio.sleep(0.1)
        except TimeoutError:
            _log.warning("the others do not serve everything yet; leaving all the same", waited_s=self.drain_s)
