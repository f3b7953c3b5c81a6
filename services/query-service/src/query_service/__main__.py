"""The command `query-service`: reads the settings, puts the parts together and runs them."""

import asyncio
import gc
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import structlog
import uvloop
from confluent_kafka import Consumer
from prometheus_client import CollectorRegistry

from query_service import command_line, logs, tls
from query_service.cluster.host_factory import End, HostFactory
from query_service.cluster.membership import Membership
from query_service.cluster.outage import QUIET_CLIENT
from query_service.cluster.peer_memory import Shard
from query_service.cluster.placement import Placement
from query_service.cluster.readiness import Readiness
from query_service.cluster.restore_bar import RestoreBar
from query_service.cluster.restore_watch import RestoreWatch
from query_service.cluster.roster import Roster
from query_service.cluster.shard_map import Member
from query_service.cluster.topic_watch import TopicWatch
from query_service.cluster.view import View, replicas_of, topics_of
from query_service.errors import FatalError
from query_service.instance import Instance, Learning
from query_service.lookups.hedging import Hedging
from query_service.lookups.local_lookup import LocalLookup
from query_service.lookups.peers import Peers
from query_service.lookups.request_checks import Limits
from query_service.lookups.routed_lookup import RoutedLookup
from query_service.lookups.routing import Routing
from query_service.metrics import Metrics
from query_service.serving.in_flight import InFlight
from query_service.serving.server import Servers
from query_service.serving.servicer import QueryServicer
from query_service.serving.shard_listing import ShardListing
from query_service.serving.shard_servicer import ShardServicer
from query_service.serving.status_page import StatusPage
from query_service.settings import Settings, load_settings
from query_service.storage import data_lock, inspection_report
from query_service.storage.changelog import Changelog
from query_service.storage.changes import Changes
from query_service.storage.inspection import inspect
from query_service.storage.store_definition import StoreDefinition
from query_service.storage.store_directory import StoreDirectory
from query_service.storage.stores_file import read_stores, stores_schema

_SWITCH_INTERVAL_S = 0.001  # so that a call never waits long for the thread that applies records
_COLLECT_AFTER = (20_000, 50, 50)  # records come in by the thousand and make no cycles

_log = structlog.get_logger()


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns the exit status that the README lists."""
    chosen = command_line.parse(arguments)
    try:
        match chosen.command:
            case "schema":
                sys.stdout.write(stores_schema())
                return 0
            case "inspect":
                return _inspect(chosen.directory, as_json=chosen.json)
        settings = load_settings()
        logs.set_up(settings.log_level, settings.instance_name)
        stores = read_stores(settings.stores)
        with data_lock.held(settings.data_directory):
            return 0 if uvloop.run(_run(settings, stores)) else 1
    except FatalError as error:
        sys.stderr.write(f"query-service: {error}\n")
        return 2


def _inspect(directory: Path, *, as_json: bool) -> int:
    found = inspect(directory)
    sys.stdout.write(inspection_report.as_json(found) if as_json else inspection_report.as_table(found))
    return 1 if found.unreadable else 0


async def _run(settings: Settings, stores: Sequence[StoreDefinition]) -> bool:
    sys.setswitchinterval(_SWITCH_INTERVAL_S)
    gc.freeze()
    gc.set_threshold(*_COLLECT_AFTER)
    stop = asyncio.Event()
    for each in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(each, stop.set)
    return await _instance(settings, stores).run(stop)


def _instance(settings: Settings, stores: Sequence[StoreDefinition]) -> Instance:
    monotonic = time.monotonic
    metrics = Metrics(CollectorRegistry())
    me = Member(settings.instance_name, settings.address, settings.shard_address, _wall_ms(), topics_of(stores))
    view = View(me, stores, settings.replicas)
    roster = Roster(me, settings.replicas, settings.departed_s, replicas_of(stores))
    ends: dict[Shard, End] = {}
    learning = Learning(asyncio.get_running_loop(), view, roster, ends)
    factory = _factory(settings, metrics, view.stores)
    changelog = Changelog(_consumer(settings), factory.reopen, _wall_ms, settings.deletions_s * 1000)
    peer_timeout_s = settings.peer_timeout_ms / 1000
    shard_tls = tls.shard_tls(settings)
    peers = Peers(settings.peer_backoff_ms / 1000, monotonic, shard_tls)
    placement = Placement(view, factory, changelog, ends, partial(peers.served_by, timeout_s=peer_timeout_s))
    learning.tell(placement)
    readiness = Readiness(view, roster, placement, metrics)
    limits = Limits(settings.max_batch_keys, settings.max_page_size, settings.default_page_size, settings.max_wait_ms)
    local = LocalLookup(view, limits, monotonic)
    hedging = Hedging(settings.hedge_after_ms / 1000, peer_timeout_s, settings.hedge_share, metrics, monotonic)
    routing = Routing(view, local, peers, hedging, peer_timeout_s, metrics, monotonic)
    routed = RoutedLookup(view, local, routing, limits, monotonic)
    listing = ShardListing(view, peers, peer_timeout_s)
    call_timeout_s = settings.call_timeout_ms / 1000
    in_flight = InFlight(settings.max_in_flight_mb << 20, metrics)
    queries = QueryServicer(
        routed,
        listing,
        limits,
        metrics,
        in_flight=in_flight,
        call_timeout_s=call_timeout_s,
        call_limit_s=settings.max_call_ms / 1000,
        answer_bytes=settings.max_answer_bytes,
        monotonic=monotonic,
    )
    return Instance(
        view=view,
        learning=learning,
        placement=placement,
        readiness=readiness,
        restore_watch=RestoreWatch(view, metrics, RestoreBar(sys.stderr) if sys.stderr.isatty() else None, monotonic),
        peers=peers,
        servers=Servers(
            settings,
            queries,
            ShardServicer(local, listing, in_flight, call_timeout_s, monotonic),
            public_tls=tls.public_tls(settings),
            shard_tls=shard_tls,
        ),
        status_page=StatusPage(
            settings.metrics_host,
            settings.metrics_port,
            metrics.registry,
            sick=lambda: None if changelog.alive else "the changelog has ended",
            unready=lambda: readiness.reason,
        ),
        changelog=changelog,
        topic_watch=TopicWatch(
            settings.kafka_bootstrap,
            view.topic_names,
            settings.end_offsets_interval_ms / 1000,
            learning.topics,
            learning.end,
        ),
        membership=Membership(
            settings.kafka_bootstrap,
            settings.group_id,
            me,
            view.topic_names,
            settings.session_timeout_ms,
            settings.membership_interval_ms / 1000,
            learning.members,
        ),
        drain_s=settings.drain_s,
    )


def _factory(settings: Settings, metrics: Metrics, definitions: Mapping[str, StoreDefinition]) -> HostFactory:
    directory = StoreDirectory(
        settings.data_directory,
        block_cache_bytes=settings.block_cache_mb << 20,
        write_buffer_bytes=settings.write_buffers_mb << 20,
        resume_limit_ms=settings.resume_limit_s * 1000,
        wall_ms=_wall_ms,
        on_set_aside=metrics.set_aside.inc,
    )
    loop = asyncio.get_running_loop()
    caught_up_s, recent = settings.caught_up_ms / 1000, settings.recent_changes
    return HostFactory(definitions, directory, lambda: Changes(loop), metrics, caught_up_s, _wall_ms, recent)


def _consumer(settings: Settings) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": settings.kafka_bootstrap,
            "group.id": f"{settings.group_id}.changelog",  # required by the client, never joined
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "error",
            "fetch.queue.backoff.ms": 5,
            "fetch.message.max.bytes": 4 << 20,
            "queued.max.messages.kbytes": 65_536,
            **QUIET_CLIENT,
        }
    )


def _wall_ms() -> int:
    return time.time_ns() // 1_000_000


if __name__ == "__main__":
    sys.exit(main())
