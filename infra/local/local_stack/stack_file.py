"""The stack file: where everything of a ready stack is, for tests, benchmarks and people."""

from pathlib import Path

from pydantic import BaseModel, ConfigDict

from local_stack.errors import NotRunningError


class Part(BaseModel):
    """A piece of the stack file; it never changes once read."""

    model_config = ConfigDict(frozen=True)


class Kafka(Part):
    """The broker."""

    bootstrap: str


class Gateway(Part):
    """The base URLs of the gateway, and the file with the certificate that signs its own."""

    http: str
    https: str
    ws: str
    wss: str
    ca_certificate: Path
    admin: str


class Edge(Part):
    """One ws-edge: the base URL behind the gateway, and where its metrics are."""

    name: str
    url: str
    metrics: str


class Query(Part):
    """One query-service: public and internal gRPC addresses as `host:port`, and where its metrics are."""

    name: str
    address: str
    shard_address: str
    metrics: str


class Metered(Part):
    """A service without an address of its own."""

    metrics: str


class RunningProcess(Part):
    """One process; `pid` is None while it does not run."""

    pid: int | None
    log: Path


class Supervisor(Part):
    """The process that keeps all others."""

    pid: int


class Basic(Part):
    """A name and password for basic authentication."""

    username: str
    password: str


class Jwt(Part):
    """What a token is signed with: `key` is its claim `iss`."""

    key: str
    secret: str
    algorithm: str


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
