"""What runs: the stack's processes, with which environment, after which others, and when each is ready."""

import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import httpx

from kong_envoy import envoy_command
from local_stack.gateway import configure_gateway, staff_headers
from local_stack.settings import EDGES, HOST, PROGRAMS, QUERIES, ROOT, Settings
from local_stack.stack_file import Credentials
from testkit.broker import Broker

TOPICS_FILE = ROOT / "infra" / "kafka" / "topics.yaml"
PIPELINES = ROOT / "services" / "stream-processor" / "pipelines" / "orders"
PROBE_TIMEOUT_S = 2.0
SECRET_BYTES = 32

# Probes keep no connection: an idle one would be what a service waits for when it stops.
HTTP = httpx.Client(timeout=PROBE_TIMEOUT_S, trust_env=False, limits=httpx.Limits(max_keepalive_connections=0))

# Returns why a process is not ready, for people; empty when it is. Blocks for 3 s at most, and never raises.
Probe = Callable[[], str]


@dataclass(frozen=True)
class ProcessSpec:
    """One process of the stack. One that ends is started again, unless it `may_end`."""

    name: str
    command: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)
    probe: Probe | None = None  # without one, a process is ready once it is done
    after: tuple[str, ...] = ()  # what must have been ready once before this one starts
    prepare: Callable[[], None] | None = None  # called before each start; may block, and raise a LocalStackError
    may_end: bool = False  # whether it is done when it ends with status 0
    stops_last: bool = False  # it is stopped when all others have ended


# Decides what runs, and for which demo users, given settings with a port for every server, as `whole_stack` does.
Plan = Callable[[Settings], tuple[Sequence[ProcessSpec], Mapping[str, Credentials]]]


def whole_stack(settings: Settings) -> tuple[Sequence[ProcessSpec], Mapping[str, Credentials]]:
    """Every service, with certificates and a fresh secret between the gateway and the edges."""
    secret = secrets.token_urlsafe(SECRET_BYTES)
    users = configure_gateway(settings, secret)
    return process_specs(settings, secret, staff_headers(users)), users


def process_specs(settings: Settings, secret: str, staff: Mapping[str, str]) -> list[ProcessSpec]:
    """All processes, each after those that must be ready first. `settings` has a port for every server.

    The gateway proves itself with `secret` to the edges; `staff` are headers that may read the shard map.
    """
    data, port_of, at = settings.files.data, settings.port_of, settings.address_of
    broker = Broker(data / "kafka", settings.kafka_port, settings.kafka_controller_port)
    topics = (str(PROGRAMS / "kafka-topics"), str(TOPICS_FILE), "--bootstrap-server", broker.bootstrap)
    table = settings.model_dump(include={"seed", "customers", "items", "limit"}) | {"rows": settings.orders}
    simulator = {**table, "rate": f"{settings.rate:g}", "database": data / "orders.sqlite"}
    interval = settings.model_dump(include={"checkpoint_interval"}, exclude_defaults=True)
    processor = {**interval, "checkpoints": data / "checkpoints"}
    query = settings.model_dump(include={"replicas", "session_timeout_ms"}) | {"host": HOST, "advertised_host": HOST}
    edge = {"host": HOST, "gateway_secret": secret, "query_addresses": ",".join(map(at, QUERIES))}

    service = partial(_service, broker.bootstrap)

    def query_service(name: str) -> ProcessSpec:
        ports = {"port": port_of(name), "shard_port": port_of(f"{name}-shard")}
        values = {**query, **ports, "instance": name, "data_directory": data / name}
        return service("query-service", port_of(f"{name}-metrics"), values, name)

    # The processor waits for its topics itself, and takes the longest to start.
    stream_processor = service("stream-processor", settings.processor_metrics_port, processor)
    pipelines = (str(file) for file in sorted(PIPELINES.glob("*.yaml")))
    # The gateway is ready when it lets staff through to an edge that is ready.
    admits = partial(probe_http, f"http://{at('gateway-http')}/v1/shards", staff)
    return [
        ProcessSpec("broker", broker.command(), {}, partial(probe_broker, broker), (), broker.prepare, stops_last=True),
        ProcessSpec("topics", topics, after=("broker",), may_end=True),
        replace(service("cdc-simulator", settings.simulator_metrics_port, simulator), may_end=True),
        replace(stream_processor, command=(*stream_processor.command, *pipelines), after=()),
        *(query_service(name) for name in QUERIES),
        *(service("ws-edge", port_of(name), {**edge, "instance": name}, name) for name in EDGES),
        ProcessSpec("gateway", envoy_command(settings.files.envoy_file), probe=admits, after=("topics",)),
    ]


def _service(kafka: str, program: str, status_port: int, settings: Mapping[str, object], name: str = "") -> ProcessSpec:
    # The edge answers for itself on the port that it serves.
    status = {"port": status_port} if program == "ws-edge" else {"metrics_host": HOST, "metrics_port": status_port}
    values = {"kafka_bootstrap": kafka, **status, **settings}
    prefix = program.upper().replace("-", "_")
    environment = {f"{prefix}_{key.upper()}": str(value) for key, value in values.items()}
    probe = partial(probe_http, f"http://{HOST}:{status_port}/readyz")
    return ProcessSpec(name or program, (str(PROGRAMS / program), "run"), environment, probe, after=("topics",))


def probe_http(url: str, headers: Mapping[str, str] | None = None) -> str:
    """Ready when the URL answers 200."""
    try:
        response = HTTP.get(url, headers=headers)
    except httpx.HTTPError as error:
        return f"{url}: {error}"
    return "" if response.is_success else f"{url}: {response.status_code} {response.text[:200].strip()}"


def probe_broker(broker: Broker) -> str:
    """Ready when the broker serves metadata."""
    return "" if broker.answers() else f"no broker answers at {broker.bootstrap}"
