"""The command `query-service`: reads the settings, puts the parts together and runs them."""

import argparse
import asyncio
import gc
import math
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import uvloop
from confluent_kafka import Consumer
from prometheus_client import CollectorRegistry

from query_service.cluster.membership import Membership
from query_service.cluster.placement import Placement, ReplicaFactory
from query_service.cluster.readiness import Readiness
from query_service.cluster.restore_watch import RestoreWatch, terminal_bar
from query_service.cluster.shard_map import Member, MemberTracker
from query_service.cluster.topic_watch import TopicWatch
from query_service.cluster.view import ClusterEvents, View
from query_service.instance import Instance
from query_service.lookups.hedging import Hedging
from query_service.lookups.local_lookup import LocalLookup
from query_service.lookups.request_checks import Limits
from query_service.lookups.routing import RoutedLookup, Routing
from query_service.metrics import Metrics
from query_service.serving.call_limits import CallLimits, InFlight
from query_service.serving.peers import Peers
from query_service.serving.server import Servers, shard_tls
from query_service.serving.servicers import QueryServicer, ShardServicer
from query_service.serving.shard_listing import ShardListing
from query_service.settings import Settings
from query_service.storage import inspection
from query_service.storage.changelog import Changelog
from query_service.storage.changes import Changes
from query_service.storage.rocksdb_engine import RocksdbOpener
from query_service.storage.store_directory import StoreDirectory, locked
from query_service.storage.stores_file import StoreDefinition, read_stores, stores_schema
from statecast_service.errors import ServiceError
from statecast_service.health import HealthServer
from statecast_service.kafka import client_options
from statecast_service.logs import configure_logs
from statecast_service.settings import describe_settings, load_settings

_SWITCH_INTERVAL_S = 0.001  # so that a call never waits long for the thread that applies records
_COLLECT_AFTER = (20_000, 50, 50)  # records come in by the thousand and make no cycles


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns the exit status that the README lists."""
    options = _parser().parse_args(arguments)
    try:
        match options.command:
            case "schema":
                sys.stdout.write(stores_schema())
                return 0
            case "inspect":
                return _inspect(options.directory, as_json=options.json)
        settings = load_settings(Settings)
        configure_logs(settings.log_level, settings.instance_name)
        stores = read_stores(settings.stores)
        with locked(settings.data_directory):
            return 0 if uvloop.run(_run(settings, stores)) else 1
    except ServiceError as error:
        sys.stderr.write(f"query-service: {error}\n")
        return error.exit_status


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="query-service",
        description="Materializes Kafka topics and answers gRPC lookups on them.",
        epilog=f"environment variables:\n{describe_settings(Settings)}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(required=True, metavar="command", dest="command")
    commands.add_parser("run", help="serve until SIGTERM")
    commands.add_parser("schema", help="print the JSON Schema of the stores file")
    inspect = commands.add_parser("inspect", help="show what a data directory holds; also beside a running instance")
    inspect.add_argument("directory", type=Path, help="the QUERY_SERVICE_DATA_DIRECTORY of an instance")
    inspect.add_argument("--json", action="store_true", help="print one JSON object")
    return parser


def _inspect(directory: Path, *, as_json: bool) -> int:
    report = inspection.inspect(directory)
    sys.stdout.write(inspection.as_json(report) if as_json else inspection.as_table(report))
    return 1 if report.unreadable else 0


async def _run(settings: Settings, stores: Sequence[StoreDefinition]) -> bool:
    sys.setswitchinterval(_SWITCH_INTERVAL_S)
    gc.freeze()
    gc.set_threshold(*_COLLECT_AFTER)
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    return await _instance(settings, stores).run(stop)


def _instance(settings: Settings, stores: Sequence[StoreDefinition]) -> Instance:
    monotonic = time.monotonic
    metrics = Metrics(CollectorRegistry())
    topics = tuple(sorted((store.name, store.topic) for store in stores if store.topic != store.name))
    me = Member(settings.instance_name, settings.address, settings.shard_address, wall_ms(), topics)
    view = View(me, stores, settings.replicas)
    peers = Peers(settings.peer_backoff_ms / 1000, monotonic, shard_tls(settings))
    tracker = MemberTracker(me, settings.replicas, settings.departed_s, view.shard_map.of_store)
    factory = _factory(settings, metrics, view.stores)
    changelog = Changelog(_consumer(settings), factory.reopen, wall_ms, settings.deletions_s * 1000)
    serving_partitions = partial(peers.served_by, timeout_s=settings.peer_timeout_ms / 1000)
    placement = Placement(view, factory.open, changelog.follow, changelog.unfollow, serving_partitions)
    events = ClusterEvents(asyncio.get_running_loop(), view, tracker, placement.changed.set)
    show_restore = terminal_bar(sys.stderr) if sys.stderr.isatty() else lambda _: None
    readiness = Readiness(view, tracker, lambda: placement.complete, metrics)
    return Instance(
        view=view,
        events=events,
        placement=placement,
        readiness=readiness,
        restore_watch=RestoreWatch(view, metrics, show_restore, monotonic),
        peers=peers,
        servers=_servers(settings, view, peers, metrics),
        health=HealthServer(
            settings,
            metrics.registry,
            liveness=lambda: None if changelog.is_alive() else "the changelog has ended",
            readiness=lambda: readiness.reason,
        ),
        changelog=changelog,
        topic_watch=TopicWatch(settings, view.topic_names, events.topics, events.end_offsets),
        membership=Membership(settings, view.me, view.topic_names, events.members),
        drain_s=settings.drain_s,
    )


def wall_ms() -> int:
    """Returns the time in milliseconds since 1970 UTC."""
    return time.time_ns() // 1_000_000


def _servers(settings: Settings, view: View, peers: Peers, metrics: Metrics) -> Servers:
    monotonic = time.monotonic
    peer_timeout_s = settings.peer_timeout_ms / 1000
    limits = Limits(settings.max_batch_keys, settings.max_page_size, settings.default_page_size, settings.max_wait_ms)
    local = LocalLookup(view, limits, monotonic)
    hedging = Hedging(settings.hedge_after_ms / 1000, peer_timeout_s, settings.hedge_share, metrics, monotonic)
    routing = Routing(view, local, peers.of, hedging, peer_timeout_s, metrics, monotonic)
    routed = RoutedLookup(view, routing, limits)
    listing = ShardListing(view, peers.freshness_at, peer_timeout_s)
    in_flight = InFlight(settings.max_in_flight_mb << 20, metrics)
    timeout_s, max_s = settings.call_timeout_ms / 1000, settings.max_call_ms / 1000
    call_limits = CallLimits(in_flight, timeout_s, max_s, settings.max_answer_bytes, monotonic)
    queries = QueryServicer(routed, listing, limits, metrics, call_limits)
    return Servers(settings, queries, ShardServicer(local, listing, call_limits._replace(max_s=math.inf)))


def _factory(settings: Settings, metrics: Metrics, definitions: Mapping[str, StoreDefinition]) -> ReplicaFactory:
    directory = StoreDirectory(
        settings.data_directory,
        RocksdbOpener(settings.block_cache_mb << 20, settings.write_buffers_mb << 20),
        resume_limit_ms=settings.resume_limit_s * 1000,
        wall_ms=wall_ms,
        on_set_aside=metrics.set_aside.inc,
    )
    loop = asyncio.get_running_loop()
    caught_up_s, recent = settings.caught_up_ms / 1000, settings.recent_changes
    return ReplicaFactory(definitions, directory, lambda: Changes(loop), metrics, caught_up_s, wall_ms, recent)


def _consumer(settings: Settings) -> Consumer:
    return Consumer(
        {
            **client_options(settings.kafka_bootstrap),
            "group.id": f"{settings.group_id}.changelog",  # required by the client, never joined
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "error",
            "fetch.queue.backoff.ms": 5,
            "fetch.message.max.bytes": 4 << 20,
            "queued.max.messages.kbytes": 65_536,
        }
    )


if __name__ == "__main__":
    sys.exit(main())
