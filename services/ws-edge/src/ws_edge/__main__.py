"""The command `ws-edge`: `run` puts the parts of an edge together and serves; `revoke` ends a consumer's access."""

import argparse
import asyncio
import os
import socket
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import structlog
import uvloop

from statecast.descriptors import MessageTypes
from statecast_service.build import add_version
from statecast_service.collector import collect_seldom
from statecast_service.errors import ServiceError
from statecast_service.logs import configure_logs
from statecast_service.settings import load_settings
from statecast_service.watched_files import Settled, state_of
from ws_edge.auth.admission import Admission
from ws_edge.auth.gateway import Gateway
from ws_edge.auth.quotas import ChannelQuota, Quota, Quotas
from ws_edge.auth.tickets import PAGE_TOKENS, Seal, Tickets
from ws_edge.channels import EDGE_STORES, REVOCATIONS
from ws_edge.channels.channels import Channels
from ws_edge.channels.kafka_writer import KafkaWriter, Writer
from ws_edge.channels.revocations import RevocationLog, Revocations
from ws_edge.errors import RequestError
from ws_edge.metrics import Metrics
from ws_edge.model.authorization import principal_of
from ws_edge.model.live_stores import LiveStores
from ws_edge.model.stores import Store
from ws_edge.rest.app import edge_app, http_app
from ws_edge.rest.caching import PublicCaching
from ws_edge.rest.channel_rest import ChannelRest
from ws_edge.rest.pages import Pages
from ws_edge.rest.reads import Reads
from ws_edge.rest.staff_rest import EdgeReport, StaffRest
from ws_edge.server import Server, listen, port_tls, query_tls
from ws_edge.session.context import SessionContext
from ws_edge.session.pace import Pace
from ws_edge.session.sockets import Sockets
from ws_edge.settings import Settings
from ws_edge.upstream.query_client import QueryClient, ShardWatch
from ws_edge.watches.hub import Hub
from ws_edge.watches.poller import Poller

LIVE_WAIT_S = 2.0
"""How long a long poll for watches with interval 0 is held, in seconds."""
LIVE_KEYS_PER_S = 100_000
"""Most keys and ranges with interval 0 that are asked for per second."""

log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class Edge:
    """All parts of one edge, not yet running."""

    hub: Hub
    client: QueryClient
    shard_watch: ShardWatch
    live_stores: LiveStores
    poller: Poller
    sockets: Sockets
    metrics: Metrics
    server: Server


def main() -> int:
    """Runs the command; returns 0 after a signal, 1 when a revocation was not recorded, 2 when it cannot start."""
    arguments = _arguments()
    configure_logs()
    try:
        settings = load_settings(Settings)
        if arguments.command == "revoke":
            principal = principal_of(arguments.consumer) if arguments.username else arguments.consumer
            return revoke(settings, principal, lift=arguments.lift)
        with listen(settings) as listener:
            uvloop.run(serve(settings, listener))
    except ServiceError as error:
        sys.stderr.write(f"ws-edge: {error}\n")
        return error.exit_status
    return 0


async def serve(settings: Settings, listener: socket.socket) -> None:
    """Serves until a signal. Raises SettingsError when a file that the settings name is wrong."""
    host, port = listener.getsockname()[:2]
    settings = settings.model_copy(update={"instance": settings.instance or f"{host}:{port}"})
    configure_logs(instance=settings.instance)
    collect_seldom()
    edge = build(settings, writer_of(settings))
    log.info("listening", host=host, port=port, query_addresses=settings.query_addresses)
    await run(edge, listener)
    log.info("stopped")


async def run(edge: Edge, listener: socket.socket) -> None:
    try:
        async with asyncio.TaskGroup() as group:
            sockets, descriptors = edge.sockets, edge.live_stores.descriptors
            parts = edge.shard_watch.run, descriptors.run, edge.poller.run, sockets.reap, sockets.end_outdated
            background = [group.create_task(part()) for part in parts]
            await edge.server.serve(sockets=[listener])
            for task in background:
                task.cancel()
    finally:
        await edge.client.close()


def build(settings: Settings, writer: Writer | None, wall_clock: Callable[[], float] = time.time) -> Edge:
    """Puts an edge together, in the loop that runs it. Without a writer it has no channels and no revocation.

    Raises SettingsError when a descriptor or a certificate is wrong.
    """
    clock = time.monotonic
    port_tls(settings)  # uvicorn reads the files itself
    types = settings.with_descriptors(MessageTypes.read)
    stores, metrics, woken = dict[str, Store](), Metrics(), asyncio.Event()
    hub = Hub(clock, settings.tick_ms / 1000, woken.set)
    client = _query_client(settings, metrics)
    revoked = replace(REVOCATIONS, max_lag_ms=settings.revocation_lag_ms)
    poller = Poller(hub, client, metrics, clock, woken, settings.batch_keys, LIVE_WAIT_S, LIVE_KEYS_PER_S)
    channels = Channels(client, writer, wall_clock, settings.channel_lifetime_s, settings.max_channel_watches)
    revocations = Revocations(hub, client, revoked, writer is not None, settings.revocation_timeout_ms / 1000)
    gateway = Gateway(settings.gateway_secrets, wall_clock)
    tickets = Tickets(settings.gateway_secrets, wall_clock)
    context = SessionContext(hub, stores, settings, metrics, tickets, clock, wall_clock)
    pace = Pace(settings.sockets_per_s, time.monotonic)
    sockets = Sockets(context, revocations, gateway, _admission(settings), pace, settings.stall_timeout_s)

    interval_s, read_types = settings.shard_refresh_ms / 1000, types_reader(settings)
    live_stores = LiveStores(stores, types, EDGE_STORES, read_types, sockets.stores_changed, metrics, interval_s)
    shard_watch = ShardWatch(client, interval_s, live_stores.take, live_stores.reason)

    def not_ready() -> str | None:
        return "this edge is stopping" if sockets.draining else shard_watch.reason

    page_tokens = Seal(settings.gateway_secrets, PAGE_TOKENS)
    caching = PublicCaching(settings.public_max_age_s, settings.public_stale_s)
    reads = Reads(client, stores, gateway, tickets, revocations, page_tokens, settings.page_size, caching)
    channel_quota = ChannelQuota(settings.consumer_channels_per_hour, clock)
    report = EdgeReport(settings.instance, metrics, not_ready, clock)
    routers = [
        reads.router(),
        ChannelRest(channels, stores, channel_quota, reads.consumer, wall_clock).router(),
        StaffRest(client, RevocationLog(writer, wall_clock), report, reads.consumer).router(),
        Pages(settings.domains).router(),
    ]
    metrics.sockets.set_function(lambda: len(sockets))
    metrics.frames.skipped = lambda: hub.skipped
    metrics.subscriptions.set_function(lambda: hub.subscriptions)
    metrics.unique_keys.set_function(lambda: hub.watches)
    metrics.query_available.set_function(lambda: shard_watch.reason is None)
    drain = partial(sockets.drain, settings.drain_notice_ms / 1000, settings.drain_window_ms / 1000)
    server = Server(edge_app(http_app(routers, metrics, not_ready), sockets), settings, drain)
    return Edge(hub, client, shard_watch, live_stores, poller, sockets, metrics, server)


def types_reader(settings: Settings) -> Callable[[], MessageTypes | None]:
    """Returns a function that reads the mounted messages when they have changed, as FollowedFile takes it."""
    settled = Settled(lambda: state_of(settings.descriptors))
    return lambda: None if settled.news() is None else settings.with_descriptors(MessageTypes.read)


def revoke(settings: Settings, principal: str, *, lift: bool) -> int:
    """Revokes a principal, or lifts its revocation.

    Returns 0 and names the principal once Kafka has acknowledged; else 1, with the reason on standard error.
    """
    revocations = RevocationLog(writer_of(settings), time.time)
    try:
        if lift:
            asyncio.run(revocations.lift(principal))
            sys.stdout.write(f"{principal!r} is let in again\n")
        else:
            since = asyncio.run(revocations.revoke(principal)).revoked_at.ToJsonString()
            log_event = "each edge logs consumer_revoked with the sockets that it closes"
            sys.stdout.write(f"{principal!r} is revoked since {since}; {log_event}, and nothing if it has none\n")
    except RequestError as error:
        sys.stderr.write(f"ws-edge: {error}\n")
        return 1
    return 0


def writer_of(settings: Settings) -> KafkaWriter | None:
    """Returns the writer to Kafka; None when the settings name no broker."""
    if not settings.kafka_bootstrap:
        return None
    return KafkaWriter(settings, settings.kafka_timeout_ms / 1000, settings.topic_prefix)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="ws-edge", description=__doc__)
    add_version(parser, "ws-edge")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    commands.add_parser("run", help="serve until SIGTERM")
    revoking = commands.add_parser("revoke", help="close a consumer's sockets at every edge, and refuse new ones")
    meaning = "custom id, exactly as the gateway has it"
    revoking.add_argument("consumer", type=_consumer, metavar="CONSUMER", help=meaning)
    revoking.add_argument("--username", action="store_true", help="CONSUMER is the username of one without custom id")
    revoking.add_argument("--lift", action="store_true", help="let the consumer in again")
    return parser.parse_args()


def _consumer(argument: str) -> str:
    """Returns the consumer that the bytes of the command line name in UTF-8, in any locale."""
    try:
        return os.fsencode(argument).decode()
    except UnicodeDecodeError as error:
        raise argparse.ArgumentTypeError(f"{argument!a} is not UTF-8, as every id is") from error


def _query_client(settings: Settings, metrics: Metrics) -> QueryClient:
    tls = query_tls(settings)
    return QueryClient(
        settings.query_addresses,
        settings.query_timeout_ms / 1000,
        settings.batch_keys,
        credentials=None if tls is None else tls.channel_credentials(),
        stale_after_ms=settings.stale_after_ms,
        on_hidden=lambda store: metrics.hidden_rows.labels(store).inc(),
    )


def _admission(settings: Settings) -> Admission:
    rates = settings.consumer_frames_per_s, settings.frames_burst_s, settings.consumer_sockets_per_s
    consumer = Quota(settings.consumer_sockets, settings.consumer_rows, *rates)
    rates = settings.address_frames_per_s, settings.frames_burst_s, settings.address_sockets_per_s
    address = Quota(settings.address_sockets, settings.address_rows, *rates)
    quotas = Quotas(consumer, address, time.monotonic)
    return Admission(settings.origins, quotas, settings.max_sockets)


if __name__ == "__main__":
    sys.exit(main())
