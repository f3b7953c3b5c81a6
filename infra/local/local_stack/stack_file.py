"""The stack file: where everything of a ready stack is, for tests, benchmarks and people."""

import os
from collections.abc import Mapping
from pathlib import Path

from local_stack import LocalStackError
from local_stack.settings import EDGES, QUERIES, Settings, postgres_of, simulator_server
from local_stack.stack_directory import Entry, Part, RunningProcess
from testkit.certificates import Certificates


class Kafka(Part):
    bootstrap: str


class Gateway(Part):
    http: str  # base URLs
    https: str
    ws: str
    wss: str
    ca_certificate: Path  # signs the gateway's own
    admin: str


class Metered(Part):
    metrics: str


class Edge(Metered):
    name: str
    url: str  # its base URL, behind the gateway


class Query(Metered):
    name: str
    address: str  # of its public gRPC server, as `host:port`
    shard_address: str  # of the internal one


class Database(Part):
    url: str  # with the user and the password
    connect: str  # base URL of Kafka Connect's own API, which tells the state of the connector


class Supervisor(Part):
    pid: int


class Basic(Part):
    username: str
    password: str


class Jwt(Part):
    key: str  # the claim `iss` of a token
    secret: str
    algorithm: str = "HS256"


class Credentials(Part):
    """One demo user of the gateway."""

    customer_id: str = ""  # empty for staff
    groups: tuple[str, ...] = ()
    basic: Basic | None = None
    key: str | None = None
    jwt: Jwt | None = None

    @property
    def headers(self) -> Mapping[str, str]:
        """The header with the key, as the gateway limits passwords; none without a key."""
        return {"apikey": self.key} if self.key else {}


class Stack(Part):
    """The whole file. Metrics URLs end with /metrics; /healthz and /readyz are beside it."""

    directory: Path
    supervisor: Supervisor
    kafka: Kafka
    gateway: Gateway
    edges: tuple[Edge, ...]
    queries: tuple[Query, ...]
    database: Database | None  # None without PostgreSQL
    domains: tuple[str, ...]
    simulators: dict[str, Metered]  # by their domains
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
    """Returns the text of the stack file, with the processes as they are now.

    `settings` has a port for every server.
    """
    at = settings.address_of

    def metrics_of(server: str) -> str:
        return f"http://{at(server)}/metrics"

    plain, secure = at("gateway-http"), at("gateway-https")
    urls = {"http": f"http://{plain}", "https": f"https://{secure}", "ws": f"ws://{plain}", "wss": f"wss://{secure}"}
    authority, admin = Certificates(settings.files.tls).authority, f"http://{at('gateway-admin')}"
    stack = Stack(
        directory=settings.directory,
        supervisor=Supervisor(pid=os.getpid()),
        kafka=Kafka(bootstrap=settings.bootstrap),
        gateway=Gateway(**urls, ca_certificate=authority, admin=admin),
        edges=tuple(Edge(name=name, url=f"http://{at(name)}", metrics=metrics_of(name)) for name in EDGES),
        queries=tuple(
            Query(name=name, address=at(name), shard_address=at(f"{name}-shard"), metrics=metrics_of(f"{name}-metrics"))
            for name in QUERIES
        ),
        database=_database(settings) if settings.source == "postgres" else None,
        domains=settings.domains,
        simulators={each: Metered(metrics=metrics_of(simulator_server(each))) for each in settings.simulated},
        processor=Metered(metrics=metrics_of("processor-metrics")),
        processes=dict(entries),
        credentials=dict(credentials),
    )
    return stack.model_dump_json(indent=2)


def _database(settings: Settings) -> Database:
    return Database(url=postgres_of(settings).dsn, connect=f"http://{settings.address_of('connect')}")
