"""The servers of the odds, without their source: two query instances, two edges, and a gateway that obeys kong.yaml."""

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from httpx import AsyncClient
from websockets.asyncio.client import connect

import kong_envoy
from drivers.gateway_client import Gateway, GatewayClient
from drivers.odds_board import MESSAGES
from local_stack.settings import KONG_FILE
from testkit.certificates import Certificates
from testkit.gateway_under_test import running_envoy
from testkit.ports import free_port, free_ports
from testkit.query_cluster import QueryCluster, query_cluster
from testkit.service_process import ServiceProcess
from testkit.waiting import scaled, wait_until, wait_until_async
from ws_edge.channels import EDGE_STORES

CREDENTIALS = {"apikey": "alice-demo-key"}
SECRET = "secret-between-gateway-and-edges"
SOCKETS, OPENED = "ws_edge_sockets", "ws_edge_sockets_opened_total"


@dataclass(frozen=True)
class OddsStack:
    """The processes, and where a customer reaches them: by `address` without TLS, by `gateway` with it."""

    cluster: QueryCluster
    edges: Mapping[str, ServiceProcess]
    gateway: Gateway
    address: str

    def calls(self) -> AsyncClient:
        """Calls of the customer."""
        return AsyncClient(base_url=f"http://{self.address}", headers=CREDENTIALS, timeout=scaled(60))

    def socket(self, path: str) -> connect:
        """Returns a socket of the customer, by the paths of ws-edge."""
        return connect(f"ws://{self.address}{path}", additional_headers=CREDENTIALS, proxy=None)

    def phone(self) -> GatewayClient:
        """Returns the customer with a client that may stop reading."""
        return GatewayClient(self.gateway, CREDENTIALS)

    def sockets(self) -> Mapping[str, float]:
        """Returns how many sockets each edge that runs has open."""
        return {name: edge.metric(SOCKETS) for name, edge in self.edges.items() if edge.running}

    async def revive(self, *killed: ServiceProcess) -> None:
        """Starts them again, and returns when they are ready."""
        for process in killed:
            process.start()  # by this thread: a process ends with the thread that has started it
        for process in killed:
            await asyncio.to_thread(process.wait_ready)

    async def revive_edge(self, killed: ServiceProcess) -> None:
        """Starts an edge again, and returns when the gateway has led a socket to it."""
        await self.revive(killed)
        await self.lead_to_each_edge()

    async def lead_to_each_edge(self) -> None:
        """Returns when the gateway has led a new socket to each edge. It passes over one that has failed a check."""
        before = {edge: edge.metric(OPENED) for edge in self.edges.values()}

        async def leads_to_each() -> bool:
            async with self.socket("/v1/stream"):
                return all(edge.metric(OPENED) > opened for edge, opened in before.items())

        await wait_until_async(leads_to_each, "the gateway leads to each edge")


@contextmanager
def odds_stack(bootstrap: str, directory: Path) -> Iterator[OddsStack]:
    """Starts all of it on a broker, and ends it."""
    with ExitStack() as ends:
        cluster = ends.enter_context(query_cluster(bootstrap, directory / "cluster"))
        for name, message in MESSAGES.items():
            cluster.add_store(name, message, keeps="members", readers="everyone")
        for name, store in EDGE_STORES.items():
            cluster.add_store(name, store.kind, format="plain")
        cluster.start("query-1", "query-2")
        edges = _edges(cluster, directory)
        for edge in edges.values():
            ends.enter_context(edge)
            edge.start()
        behind = [edge.status.url.removeprefix("http://") for edge in edges.values()]
        http, gateway = ends.enter_context(_running_gateway(behind, directory))
        stack = OddsStack(cluster, edges, gateway, http)
        for edge in edges.values():
            edge.wait_ready()
        phone = stack.phone()
        wait_until(lambda: phone.get("/v1/stores").is_success, "the gateway leads to an edge")
        yield stack


def _edges(cluster: QueryCluster, directory: Path) -> dict[str, ServiceProcess]:
    settings = {
        "kafka_bootstrap": cluster.bootstrap,
        "query_addresses": ",".join(instance.address for instance in cluster.instances.values()),
        "gateway_secret": SECRET,
        "stall_timeout_s": scaled(60),
    }
    ports = {name: free_port() for name in ("edge-1", "edge-2")}
    return {
        name: ServiceProcess("ws_edge", {**settings, "instance": name, "port": port}, directory / f"{name}.log", port)
        for name, port in ports.items()
    }


@contextmanager
def _running_gateway(edges: list[str], directory: Path) -> Iterator[tuple[str, Gateway]]:
    """Runs Envoy with the rendered file; yields its address without TLS, and the one with it."""
    certificates = Certificates(directory)
    certificates.ensure(datetime.now(UTC))
    http, https, admin = (f"127.0.0.1:{port}" for port in free_ports(3))
    config = kong_envoy.render(
        kong_envoy.load(KONG_FILE),
        environment={
            "GATEWAY_SECRET": SECRET,
            "GATEWAY_TLS_CERTIFICATE": certificates.certificate.read_text(),
            "GATEWAY_TLS_KEY": certificates.key.read_text(),
        },
        listen_http=http,
        listen_https=https,
        admin=admin,
        resolve={"ws-edge:8080": edges, "query-service:50051": edges[:1]},
    )
    with running_envoy(config, directory):
        yield http, Gateway(f"https://{https}", f"wss://{https}", str(certificates.authority))
