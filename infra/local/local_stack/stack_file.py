"""The stack file: where everything of a ready stack is, for tests, benchmarks and people."""

import os
from collections.abc import Mapping
from pathlib import Path

from local_stack import LocalStackError
from local_stack.settings import EDGES, HOST, QUERIES, Settings
from local_stack.stack_directory import Entry, Part
from testkit.certificates import Certificates


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
    """Reads the stack file. Raises LocalStackError when there is none."""
    try:
        return Stack.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        raise LocalStackError(f"no ready stack: {path} does not exist; `make up` starts one") from None


def stack_text(settings: Settings, credentials: Mapping[str, Credentials], entries: Mapping[str, Entry]) -> str:
    """The text of the stack file, with the processes as they are now. `settings` has a port for every server."""

    def at(port: int, scheme: str = "http://", path: str = "") -> str:
        return f"{scheme}{HOST}:{port}{path}"

    def metered(port: int) -> Metered:
        return Metered(metrics=at(port, path="/metrics"))

    def query(name: str) -> Query:
        address, shard_address = at(settings.port_of(name), ""), at(settings.port_of(name, "shard_port"), "")
        metrics = metered(settings.port_of(name, "metrics_port")).metrics
        return Query(name=name, address=address, shard_address=shard_address, metrics=metrics)

    plain, secure = settings.gateway_http_port, settings.gateway_https_port
    urls = {"http": at(plain), "https": at(secure, "https://"), "ws": at(plain, "ws://"), "wss": at(secure, "wss://")}
    authority, admin = Certificates(settings.files.tls).authority, at(settings.gateway_admin_port)
    edges = {name: settings.port_of(name) for name in EDGES}
    stack = Stack(
        directory=settings.directory,
        supervisor=Supervisor(pid=os.getpid()),
        kafka=Kafka(bootstrap=at(settings.kafka_port, "")),
        gateway=Gateway(**urls, ca_certificate=authority, admin=admin),
        edges=tuple(Edge(name=name, url=at(port), metrics=metered(port).metrics) for name, port in edges.items()),
        queries=tuple(query(name) for name in QUERIES),
        simulator=metered(settings.simulator_metrics_port),
        processor=metered(settings.processor_metrics_port),
        processes={name: RunningProcess(pid=entry.pid, log=entry.log) for name, entry in entries.items()},
        credentials=dict(credentials),
    )
    return stack.model_dump_json(indent=2)
