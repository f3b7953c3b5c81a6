"""The command `ws-edge`: `run` reads the settings, puts the parts together and serves; `revoke` ends an access."""

import argparse
import asyncio
import socket
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

import structlog
import uvloop

from ws_edge import logs, settings, stores, tls
from ws_edge.access.admission import Admission
from ws_edge.access.channel_quota import ChannelQuota
from ws_edge.access.gateway import Gateway
from ws_edge.access.origins import Origins
from ws_edge.access.pace import Pace
from ws_edge.access.quotas import Quota, Quotas
from ws_edge.access.tickets import Tickets
from ws_edge.errors import SettingsError
from ws_edge.hub.hub import Hub
from ws_edge.hub.live_lanes import LiveLanes
from ws_edge.hub.poller import Poller
from ws_edge.metrics import Metrics
from ws_edge.querying.addresses import Addresses
from ws_edge.querying.query_client import QueryClient
from ws_edge.querying.shard_watch import ShardWatch
from ws_edge.revoke_command import revoke, writer_of
from ws_edge.server import Server, listen
from ws_edge.settings import Settings
from ws_edge.shared import own_stores
from ws_edge.shared.channels import Channels
from ws_edge.shared.kafka_writer import Writer
from ws_edge.shared.revocation_log import RevocationLog
from ws_edge.shared.revocations import Revocations
from ws_edge.sockets.leavings import Leavings, collect_seldom
from ws_edge.sockets.sockets import Sockets
from ws_edge.sockets.surroundings import Limits, Surroundings
from ws_edge.tls import Tls
from ws_edge.web.app import edge_app, http_app
from ws_edge.web.channel_rest import ChannelRest
from ws_edge.web.edge_report import EdgeReport
from ws_edge.web.rest import Rest
from ws_edge.web.revocation_rest import RevocationRest

log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class Edge:
    """All parts of one edge, not yet running."""

    hub: Hub
    client: QueryClient
    shard_watch: ShardWatch
    poller: Poller
    sockets: Sockets
    metrics: Metrics
    server: Server


def build(
    given: Settings,
    table: stores.Stores,
    encryption: Tls,
    writer: Writer | None,
    calendar: Callable[[], float] = time.time,
) -> Edge:
    """Puts an edge together. Must be called in the event loop that runs it.

    Without a writer there are no channels and no revocation. `calendar` tells seconds since 1970.
    """
    clock = time.monotonic
    gateway = Gateway(given.gateway_secrets, certified=encryption.port is not None and encryption.port.mutual)
    tickets = Tickets(given.gateway_secrets, calendar, given.ticket_lifetime_s)
    metrics = Metrics()
    hub = Hub(clock, given.tick_ms / 1000, given.unavailable_after_ms / 1000)
    addresses = Addresses(given.query_addresses, clock, given.query_backoff_ms / 1000)
    client = QueryClient(addresses, given.query_timeout_ms / 1000, given.batch_keys, encryption.query)
    shard_watch = ShardWatch(client, given.shard_refresh_ms / 1000)
    live = LiveLanes(
        hub, client, metrics, clock, given.live_wait_ms / 1000, float(given.live_keys_per_s), given.batch_keys
    )
    poller = Poller(hub, client, {**table, **own_stores.ALL}, metrics, clock, live, given.batch_keys)
    most, most_ranges = given.max_channel_subscriptions, given.max_ranges
    channels = Channels(client, table, writer, calendar, given.channel_lifetime_s, most, most_ranges)
    revocations = Revocations(hub, client, writer is not None, given.unavailable_after_ms / 1000)
    around = Surroundings(hub, table, _limits(given), metrics, tickets, clock, calendar)
    sockets = Sockets(around, channels, revocations, gateway, _admission(given, clock), given.stall_timeout_s)

    def not_ready() -> str | None:
        return "this edge is being stopped" if sockets.draining else shard_watch.reason

    report = EdgeReport(given.instance, metrics, not_ready, clock)
    rest = Rest(client, table, gateway, tickets, revocations, given.page_size, report)
    quota = ChannelQuota(given.consumer_channels_per_hour, clock)
    channel_rest = ChannelRest(channels, quota, rest.consumer)
    revocation_rest = RevocationRest(RevocationLog(writer, calendar), rest.consumer)
    metrics.sockets.set_function(lambda: len(sockets))
    metrics.subscriptions.set_function(lambda: hub.subscriptions)
    metrics.unique_keys.set_function(lambda: hub.unique_keys)
    metrics.query_available.set_function(lambda: shard_watch.reason is None)
    routers = [calls.router() for calls in (rest, channel_rest, revocation_rest)]
    app = edge_app(http_app(routers, metrics, not_ready), sockets)

    async def drain() -> None:
        await sockets.drain(given.drain_notice_ms / 1000, given.drain_window_ms / 1000)

    server = Server(app, given, encryption.port, drain)
    return Edge(hub, client, shard_watch, poller, sockets, metrics, server)


async def run(edge: Edge, listener: socket.socket) -> None:
    """Serves until the server has been told to end."""
    try:
        async with asyncio.TaskGroup() as group:
            background = [
                group.create_task(run())
                for run in (edge.shard_watch.run, edge.poller.run, edge.sockets.reap, Leavings(edge.sockets).run)
            ]
            await edge.server.serve(sockets=[listener])
            for task in background:
                task.cancel()
    finally:
        await edge.client.close()


def main() -> None:
    """Runs the command; ends with 0 after a signal, and with 2 when it cannot start."""
    arguments = _arguments()
    logs.configure()
    try:
        given = settings.read()
        if arguments.command == "revoke":
            sys.exit(revoke(given, arguments.consumer, lift=arguments.lift))
        table = stores.read(given.stores)
        encryption = tls.read(given)
        listener = listen(given)
    except SettingsError as error:
        sys.stderr.write(f"ws-edge: {error}\n")
        sys.exit(2)
    uvloop.run(_serve(given, table, encryption, listener))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="ws-edge", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    commands.add_parser("run", help="serve until SIGTERM")
    revoking = commands.add_parser("revoke", help="close a consumer's sockets at every edge, and refuse new ones")
    revoking.add_argument("consumer", metavar="CONSUMER", help="custom id, or username of a consumer without one")
    revoking.add_argument("--lift", action="store_true", help="let the consumer in again")
    return parser.parse_args()


async def _serve(given: Settings, table: stores.Stores, encryption: Tls, listener: socket.socket) -> None:
    host, port = listener.getsockname()[:2]
    given = given.model_copy(update={"instance": given.instance or f"{host}:{port}"})
    structlog.contextvars.bind_contextvars(instance=given.instance)
    log.info("listening", host=host, port=port, query_addresses=given.query_addresses)
    collect_seldom()
    await run(build(given, table, encryption, writer_of(given)), listener)
    log.info("stopped")


def _admission(given: Settings, clock: Callable[[], float]) -> Admission:
    burst_s = given.frames_burst_s
    consumer = Quota(given.consumer_sockets, given.consumer_subscriptions, given.consumer_frames_per_s, burst_s)
    address = Quota(given.address_sockets, given.address_subscriptions, given.address_frames_per_s, burst_s)
    pace = Pace(given.sockets_per_s, given.slow_start_s, clock)
    return Admission(Origins(given.origins), Quotas(consumer, address, clock), pace, given.max_sockets)


def _limits(given: Settings) -> Limits:
    return Limits(
        given.default_interval_ms,
        given.min_interval_ms,
        given.max_interval_ms,
        given.max_subscriptions,
        given.max_replies,
        given.max_outbox_bytes,
        given.page_size,
        given.max_members,
        given.max_ranges,
    )


if __name__ == "__main__":
    main()
