"""The command `ws-edge run`: reads the settings, puts the parts together and serves."""

import argparse
import asyncio
import socket
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

import structlog
import uvloop

from ws_edge import logs, settings, stores
from ws_edge.addresses import Addresses
from ws_edge.admission import Admission
from ws_edge.app import edge_app, http_app
from ws_edge.edge_report import EdgeReport
from ws_edge.errors import SettingsError
from ws_edge.gateway import Gateway
from ws_edge.hub import Hub
from ws_edge.live_lanes import LiveLanes
from ws_edge.metrics import Metrics
from ws_edge.origins import Origins
from ws_edge.pace import Pace
from ws_edge.poller import Poller
from ws_edge.query_client import QueryClient
from ws_edge.quotas import Quota, Quotas
from ws_edge.rest import Rest
from ws_edge.server import Server, listen
from ws_edge.settings import Settings
from ws_edge.shard_watch import ShardWatch
from ws_edge.sockets import Sockets
from ws_edge.surroundings import Limits, Surroundings
from ws_edge.tickets import Tickets

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


def build(given: Settings, table: stores.Stores, calendar: Callable[[], float] = time.time) -> Edge:
    """Puts an edge together. Must be called in the event loop that runs it. `calendar` tells seconds since 1970."""
    clock = time.monotonic
    gateway = Gateway(given.gateway_secrets)
    tickets = Tickets(given.gateway_secrets, calendar, given.ticket_lifetime_s)
    metrics = Metrics()
    hub = Hub(clock, given.tick_ms / 1000, given.unavailable_after_ms / 1000)
    addresses = Addresses(given.query_addresses, clock, given.query_backoff_ms / 1000)
    client = QueryClient(addresses, given.query_timeout_ms / 1000, given.batch_keys)
    shard_watch = ShardWatch(client, given.shard_refresh_ms / 1000)
    live = LiveLanes(
        hub, client, metrics, clock, given.live_wait_ms / 1000, float(given.live_keys_per_s), given.batch_keys
    )
    poller = Poller(hub, client, table, metrics, clock, live)
    around = Surroundings(hub, table, _limits(given), metrics, tickets, clock, calendar)
    sockets = Sockets(around, gateway, _admission(given, clock), given.stall_timeout_s)

    def not_ready() -> str | None:
        return "this edge is being stopped" if sockets.draining else shard_watch.reason

    report = EdgeReport(given.instance, metrics, not_ready, clock)
    rest = Rest(client, table, gateway, tickets, given.page_size, report)
    metrics.sockets.set_function(lambda: len(sockets))
    metrics.subscriptions.set_function(lambda: hub.subscriptions)
    metrics.unique_keys.set_function(lambda: hub.unique_keys)
    metrics.query_available.set_function(lambda: shard_watch.reason is None)
    app = edge_app(http_app(rest, metrics, not_ready), sockets)
    server = Server(app, given, lambda: sockets.drain(given.drain_notice_ms / 1000, given.drain_window_ms / 1000))
    return Edge(hub, client, shard_watch, poller, sockets, metrics, server)


async def run(edge: Edge, listener: socket.socket) -> None:
    """Serves until the server has been told to end."""
    try:
        async with asyncio.TaskGroup() as group:
            background = [
                group.create_task(run()) for run in (edge.shard_watch.run, edge.poller.run, edge.sockets.reap)
            ]
            await edge.server.serve(sockets=[listener])
            for task in background:
                task.cancel()
    finally:
        await edge.client.close()


def main() -> None:
    """Runs the command; ends with 0 after a signal and with 2 when it cannot start."""
    parser = argparse.ArgumentParser(prog="ws-edge", description=__doc__)
    parser.add_subparsers(required=True, metavar="COMMAND").add_parser("run", help="serve until SIGTERM")
    parser.parse_args()
    logs.configure()
    try:
        given = settings.read()
        table = stores.read(given.stores)
        listener = listen(given)
    except SettingsError as error:
        sys.stderr.write(f"ws-edge: {error}\n")
        sys.exit(2)
    uvloop.run(_serve(given, table, listener))


async def _serve(given: Settings, table: stores.Stores, listener: socket.socket) -> None:
    host, port = listener.getsockname()[:2]
    given = given.model_copy(update={"instance": given.instance or f"{host}:{port}"})
    structlog.contextvars.bind_contextvars(instance=given.instance)
    log.info("listening", host=host, port=port, query_addresses=given.query_addresses)
    await run(build(given, table), listener)
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
    )


if __name__ == "__main__":
    main()
