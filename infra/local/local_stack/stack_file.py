"""The stack file: where everything of a ready stack is, for tests, benchmarks and people."""

import os
from collections.abc import Mapping
from pathlib import Path

from local_stack import NotRunningError
from local_stack.settings import HOST, Settings
from local_stack.stack_directory import Entry, Part


class Kafka(Part):
    bootstrap: str


class Gateway(Part):
    """Base URLs, and the file with the certificate that signs the gateway's own."""

    http: str
    https: str
    ws: str
    wss: str
    ca_certificate: Path
    admin: str


class Metered(Part):
    metrics: str


class Edge(Metered):
    """One ws-edge; `url` is its base URL behind the gateway."""

    name: str
    url: str


class Query(Metered):
    """One query-service: public and internal gRPC addresses as `host:port`."""

    name: str
    address: str
    shard_address: str


class RunningProcess(Part):
    pid: int | None
    log: Path


class Supervisor(Part):
    pid: int


class Basic(Part):
    username: str
    password: str


class Jwt(Part):
    """What a token is signed with: `key` is its claim `iss`."""

    key: str
    secret: str
    algorithm: str = "HS256"


class Credentials(Part):
    """One demo user of the gateway. `customer_id` is empty for staff."""

    customer_id: str = ""
    groups: tuple[str, ...] = ()
    basic: Basic | None = None
    key: str | None = None
    jwt: Jwt | None = None


class Stack(Part):
    """The whole file. Metrics URLs end with /metrics; /healthz and /readyz are beside it."""

    directory: Path
    supervisor: Supervisor
    kafka: Kafka
    gateway: Gateway
    edges: tuple[Edge, ...]
    queries: tuple[Query, ...]
    simulator: Metered
    processor: Metered
    processes: dict[str, RunningProcess]
    credentials: dict[str, Credentials]


def read_stack(path: Path) -> Stack:
    """Reads the stack file. Raises NotRunningError when there is none."""
    try:
        return Stack.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        raise NotRunningError(f"no ready stack: {path} does not exist; `make up` starts one") from None


def stack_text(
    settings: Settings, authority: Path, credentials: Mapping[str, Credentials], entries: Mapping[str, Entry]
) -> str:
    """The text of the stack file, with the processes as they are now. `settings` has a port for every server."""

    def metrics(port: int) -> str:
        return f"http://{HOST}:{port}/metrics"

    def query(number: int) -> Query:
        port, shard_port, metrics_port = settings.query_ports(number)
        addresses = {"address": f"{HOST}:{port}", "shard_address": f"{HOST}:{shard_port}"}
        return Query(name=f"query-{number}", metrics=metrics(metrics_port), **addresses)

    edges = {f"edge-{number}": settings.edge_port(number) for number in (1, 2)}
    plain, secure = f"{HOST}:{settings.gateway_http_port}", f"{HOST}:{settings.gateway_https_port}"
    urls = {"http": f"http://{plain}", "https": f"https://{secure}", "ws": f"ws://{plain}", "wss": f"wss://{secure}"}
    admin = f"http://{HOST}:{settings.gateway_admin_port}"
    stack = Stack(
        directory=settings.directory,
        supervisor=Supervisor(pid=os.getpid()),
        kafka=Kafka(bootstrap=f"{HOST}:{settings.kafka_port}"),
        gateway=Gateway(**urls, ca_certificate=authority, admin=admin),
        edges=tuple(
            Edge(name=name, url=f"http://{HOST}:{port}", metrics=metrics(port)) for name, port in edges.items()
        ),
        queries=(query(1), query(2)),
        simulator=Metered(metrics=metrics(settings.simulator_metrics_port)),
        processor=Metered(metrics=metrics(settings.processor_metrics_port)),
        processes={name: RunningProcess(pid=entry.pid, log=entry.log) for name, entry in entries.items()},
        credentials=dict(credentials),
    )
    return stack.model_dump_json(indent=2)
