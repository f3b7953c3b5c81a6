"""One instance from start to drain: puts its parts together, starts them in order, watches over and stops them."""

import asyncio
import math
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial

import structlog
from confluent_kafka import Consumer
from prometheus_client import CollectorRegistry

from query_service.cluster.disk_watch import DiskWatch
from query_service.cluster.live_stores import LiveStores
from query_service.cluster.membership import Membership
from query_service.cluster.misplaced_watch import MisplacedWatch
from query_service.cluster.placement import Placement, ReplicaFactory
from query_service.cluster.readiness import Readiness
from query_service.cluster.restore_watch import RestoreWatch, terminal_bar
from query_service.cluster.settings_watch import SettingsWatch
from query_service.cluster.shard_map import RULES, Member, MemberTracker
from query_service.cluster.topic_watch import TopicWatch
from query_service.cluster.view import ClusterEvents, View
from query_service.metrics import Metrics
from query_service.reads.dispatch import Dispatch
from query_service.reads.hedge import Hedging
from query_service.reads.local import LocalReads
from query_service.reads.request_checks import Limits
from query_service.reads.route import Preference
from query_service.reads.routed import RoutedReads
from query_service.server.limits import CallLimits, InFlight
from query_service.server.methods import QueryMethods, ShardMethods
from query_service.server.partition_listing import PartitionListing
from query_service.server.peers import Peers
from query_service.server.seeding import Seeding
from query_service.server.server import Servers, shard_tls
from query_service.server.shard_channel import FEATURES, members_at
from query_service.server.shard_listing import ShardListing
from query_service.settings import Settings
from query_service.storage.changelog import Changelog
from query_service.storage.checkpoints import Checkpoints, Pace
from query_service.storage.rocksdb_engine import RocksdbOpener
from query_service.storage.steady_clock import SteadyClock
from query_service.storage.store_directory import StoreDirectory
from query_service.storage.stores_file import StoreDefinition, read_stores
from query_service.storage.topic_facts import TopicFacts
from statecast.descriptors import MessageTypes
from statecast_service.health import HealthServer
from statecast_service.kafka import connect
from statecast_service.watched_files import changes_of

_UPDATE_S = 0.1
_SEEN_BY_PEERS_S = 1.0  # their next heartbeat, and a reading of the list
_THREAD_S = 5.0
_CLOCK_S = 600.0  # for which a jump of the clock has to last

_log = structlog.get_logger()


class Instance:
    """The parts of one instance; the only place that puts them together."""

    def __init__(self, settings: Settings, stores: Sequence[StoreDefinition]) -> None:
        """Makes the parts; nothing runs yet. Needs a running event loop. Raises SettingsError for wrong TLS files."""
        self._drain_s = settings.drain_s
        metrics = Metrics(CollectorRegistry())
        topics = tuple(sorted((store.name, store.topic) for store in stores if store.topic != store.name))
        identity = settings.instance_name, settings.address, settings.shard_address, wall_ms()
        me = Member(*identity, topics, settings.zone, RULES, FEATURES, settings.common)
        view = self._view = View(me, stores, settings.replicas)
        backoff_s, timeout_s = settings.peer_backoff_ms / 1000, settings.peer_timeout_ms / 1000
        peers = self._peers = Peers(backoff_s, timeout_s, time.monotonic, shard_tls(settings))
        of_store, wait_s = view.shard_map.of_store, settings.replace_after_s
        tracker = MemberTracker(me, settings.replicas, settings.departed_s, of_store, wait_s)
        facts = TopicFacts(settings, settings.resume_limit_s * 1000)
        checkpoints = Checkpoints(settings.data_directory, settings.max_seeds, metrics, time.monotonic)
        self._checkpoints = checkpoints
        clock = SteadyClock(wall_ms, suspended_too, min(_CLOCK_S, settings.deletions_s))
        factory = replica_factory(settings, facts.limit_ms, metrics, view, clock)
        seeding = self._seeding = Seeding(
            view,
            factory.directory,
            lambda member: peers.of(member).held,
            shard_tls(settings),
            metrics,
            settings.seed_replicas,
            settings.max_seeds,
            time.monotonic,
        )
        disk = DiskWatch(view, factory.directory, metrics, settings.released_s, settings.set_aside_s, time.monotonic)
        changelog = self._changelog = Changelog(
            partial(_consumer, settings), factory.reopen, facts, clock, settings.deletions_s * 1000
        )
        placement = self._placement = Placement(
            view,
            factory.open,
            changelog.follow,
            changelog.unfollow,
            peers.served_by,
            factory.resume,
            seeding.seed,
            disk,
        )
        events = self._events = ClusterEvents(asyncio.get_running_loop(), view, tracker, placement.changed.set)
        readiness = self._readiness = Readiness(
            view,
            tracker,
            lambda: placement.is_complete,
            lambda: peers.were_asked(view.shard_map.members - {view.me}),
            metrics,
        )
        self._misplaced = MisplacedWatch(view, peers.misplaced, metrics)
        self._settings_watch = SettingsWatch(view, metrics)
        show_restore = terminal_bar(sys.stderr) if sys.stderr.isatty() else lambda _: None
        self._restore_watch = RestoreWatch(view, metrics, show_restore, time.monotonic)
        self._servers = servers_of(settings, view, peers, metrics, checkpoints)
        self._health = HealthServer(
            settings,
            metrics.registry,
            liveness=lambda: None if changelog.is_alive() else "the changelog has ended",
            readiness=lambda: readiness.reason,
        )
        self._topic_watch = TopicWatch(
            settings, lambda: view.topic_names, lambda: view.wanted, events.topics, events.end_offsets
        )
        ask = partial(members_at, tls=shard_tls(settings))
        membership = self._membership = Membership(settings, me, view.topic_names, events.members, ask)

        def announce(topics: tuple[tuple[str, str], ...]) -> None:
            view.me = membership.me = replace(me, topics=topics)

        interval_s = settings.stores_interval_ms / 1000
        read = stores_reader(settings)
        self._live_stores = LiveStores(view, read, events.set_stores, announce, metrics, interval_s)

    async def run(self, stop: asyncio.Event) -> bool:
        """Serves until `stop` is set, then drains; False if it ended by itself.

        Raises PortInUseError at the start, NameTakenError when another live instance has the name of this one.
        """
        self._checkpoints.delete_all()
        self._seeding.directory.remove_unfinished()
        self._health.start()
        await self._servers.start()
        self._changelog.start()
        self._topic_watch.start()
        self._membership.start()
        placing = asyncio.create_task(self._placement.run(), name="placement")
        watching = asyncio.create_task(self._live_stores.file.run(), name="stores-file")
        _log.info("started", address=self._view.me.address, shard_address=self._view.me.shard_address)
        try:
            return await self._serve(stop, placing, watching)
        finally:
            watching.cancel()
            await self._drain(placing)

    async def _serve(self, stop: asyncio.Event, *tasks: "asyncio.Task[None]") -> bool:
        ready = False
        while not stop.is_set():
            ended = self._ended(tasks)  # before the refusal, which ends a thread
            if (refusal := self._membership.refusal) is not None:
                raise refusal
            self._events.update()
            self._readiness.update()
            self._restore_watch.update()
            self._misplaced.update()
            self._settings_watch.update()
            if not ready and self._readiness.reason is None:
                ready = True
                await self._servers.set_serving(serving=True)
                _log.info("ready", partitions=len(self._view.replicas))
            if ended:
                defect = next((task.exception() for task in tasks if task.done()), None)
                event = "a component ended; stopping so that the instance is restarted"
                _log.error(event, ended=ended, exc_info=defect)
                return False
            shard_map = self._view.shard_map
            await self._peers.keep((shard_map.members | shard_map.departed) - {self._view.me})
            self._checkpoints.expire()
            with suppress(TimeoutError):
                await asyncio.wait_for(stop.wait(), _UPDATE_S)
        return True

    def _ended(self, tasks: Sequence["asyncio.Task[None]"]) -> list[str]:
        """Returns the names of the parts that have ended by themselves."""
        threads = self._changelog, self._topic_watch, self._membership
        ended = [task.get_name() for task in tasks if task.done()]
        ended += [thread.name for thread in threads if not thread.is_alive()]
        return [*ended, "servers"] if self._servers.has_ended else ended

    async def _drain(self, placing: "asyncio.Task[None]") -> None:
        _log.info("draining: leaving the group, answering until the others serve everything")
        placing.cancel()
        self._readiness.reason = "draining"
        await self._servers.set_serving(serving=False)
        self._events.leave()
        await asyncio.to_thread(self._membership.stop, _THREAD_S)
        if self._view.shard_map.members:
            await self._hand_over()
        await self._servers.stop(1.0)
        self._checkpoints.delete_all()
        await asyncio.to_thread(self._topic_watch.stop, _THREAD_S)
        await asyncio.to_thread(self._changelog.stop)
        await self._peers.keep(())
        self._health.stop()
        _log.info("stopped")

    async def _hand_over(self) -> None:
        try:
            async with asyncio.timeout(self._drain_s):
                await asyncio.sleep(_SEEN_BY_PEERS_S)
                while not await self._placement.handed_over():  # noqa: ASYNC110  the answer lies at the peers
                    await asyncio.sleep(0.1)
        except TimeoutError:
            _log.warning("leaving although the others do not serve everything yet", waited_s=self._drain_s)


def servers_of(settings: Settings, view: View, peers: Peers, metrics: Metrics, checkpoints: Checkpoints) -> Servers:
    """Makes the servers of an instance, with the reads behind them."""
    monotonic = time.monotonic
    timeout_s, max_s = settings.call_timeout_ms / 1000, settings.max_call_ms / 1000
    peer_timeout_s = settings.peer_timeout_ms / 1000
    sizes = settings.max_batch_keys, settings.max_page_size, settings.default_page_size
    limits = Limits(*sizes, settings.max_wait_ms, settings.max_answer_bytes)
    local = LocalReads(view, limits, monotonic)
    hedging = Hedging(settings.hedge_after_ms / 1000, peer_timeout_s, settings.hedge_share, metrics, monotonic)
    preference = Preference(view, peers.of, settings.demoted_lag_ms / 1000, settings.caught_up_ms / 1000)
    in_flight = InFlight(settings.max_in_flight_mb << 20, metrics)
    dispatch = Dispatch(view, local, peers.of, preference, hedging, peer_timeout_s, metrics, monotonic)
    routed = RoutedReads(view, local, dispatch, limits, in_flight.check_room)
    call_limits = CallLimits(in_flight, timeout_s, max_s, monotonic)
    queries = QueryMethods(routed, limits, call_limits, ShardListing(view, preference, monotonic), metrics)
    pace, shard_limits = Pace(settings.seed_mb_per_s * 1e6, monotonic), call_limits._replace(max_s=math.inf)
    # The instance that passes a call on has applied its own, which may be others while a setting is changed.
    passed = limits._replace(batch_keys=sys.maxsize, wait_ms=sys.maxsize)
    shards = ShardMethods(local, passed, shard_limits, PartitionListing(view), checkpoints, pace)
    return Servers(settings, queries.methods(), shards.methods(), in_flight)


def replica_factory(
    settings: Settings, limit_ms: Callable[[str], int], metrics: Metrics, view: View, clock: SteadyClock
) -> ReplicaFactory:
    """Returns the factory that opens the replicas of an instance. Needs a running event loop."""

    # Called in other threads: a length is all of the view that they may read.
    def max_recent_rows() -> int:
        return settings.recent_changes // max(1, len(view.replicas))

    directory = StoreDirectory(
        settings.data_directory,
        RocksdbOpener(settings.block_cache_mb << 20, settings.write_buffers_mb << 20),
        limit_ms=limit_ms,
        wall_ms=wall_ms,
        on_set_aside=metrics.set_aside.inc,
    )
    caught_up_s, loop = settings.caught_up_ms / 1000, asyncio.get_running_loop()
    return ReplicaFactory(directory, clock, loop, metrics, caught_up_s, max_recent_rows)


def stores_reader(settings: Settings) -> Callable[[], Sequence[StoreDefinition] | None]:
    """Returns a function that reads the stores file when it or a descriptor has changed, as FollowedFile takes it."""

    def read() -> Sequence[StoreDefinition]:
        return read_stores(settings.stores, settings.with_descriptors(MessageTypes.read))

    return changes_of(settings.stores, settings.descriptors, read)


def _consumer(settings: Settings) -> Consumer:
    options = {
        "group.id": f"{settings.group_id}.changelog",  # required by the client, never joined
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        "enable.partition.eof": True,
        "auto.offset.reset": "error",
        "fetch.queue.backoff.ms": 5,
        "fetch.message.max.bytes": 4 << 20,
        "queued.max.messages.kbytes": 65_536,
    }
    return connect(Consumer, settings, options)


def wall_ms() -> int:
    """Returns the time of the wall clock, in milliseconds since 1970."""
    return time.time_ns() // 1_000_000


def suspended_too() -> float:
    """Returns the seconds since some time, those included in which the machine was suspended, where it counts them."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))
