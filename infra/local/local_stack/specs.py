"""What runs: the stack's processes, with which environment, after which others, and when each is ready."""

import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial

import httpx

from kong_envoy import envoy_command
from local_stack.gateway import KONG_FILE, authorization, read_demo_users, render_gateway
from local_stack.settings import HOST, PROGRAMS, ROOT, Settings
from local_stack.stack_directory import Entry, StackDirectory
from local_stack.stack_file import stack_text
from testkit.broker import Broker
from testkit.certificates import Certificates

TOPICS_FILE = ROOT / "infra" / "kafka" / "topics.yaml"
PIPELINES = ROOT / "services" / "stream-processor" / "pipelines" / "orders"
PROBE_TIMEOUT_S = 2.0
SECRET_BYTES = 32

# Probes keep no connection: an idle one would be what a service waits for when it stops.
HTTP = httpx.Client(timeout=PROBE_TIMEOUT_S, trust_env=False, limits=httpx.Limits(max_keepalive_connections=0))

Probe = Callable[[], str]
"""Returns why a process is not ready, for people; empty when it is. Blocks for 3 s at most, and never raises."""

StackText = Callable[[Mapping[str, Entry]], str]
"""Makes the text of the stack file from the processes as they are now."""


@dataclass(frozen=True)
class ProcessSpec:
    """One process of the stack.

    `after` names the processes that must have been ready once before this one starts. `prepare` is called before the
    first start; it may block, and raise a LocalStackError. A process that ends with status 0 is done when it
    `may_end`, and is started again otherwise. Without a probe a process is ready once it is done. One that
    `stops_last` is stopped when all others have ended.
    """

    name: str
    command: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)
    probe: Probe | None = None
    after: tuple[str, ...] = ()
    prepare: Callable[[], None] | None = None
    may_end: bool = False
    stops_last: bool = False


Plan = Callable[[Settings, StackDirectory], tuple[Sequence[ProcessSpec], StackText]]
"""Decides what runs, given settings with a port for every server, as `whole_stack` does."""


def whole_stack(settings: Settings, directory: StackDirectory) -> tuple[Sequence[ProcessSpec], StackText]:
    """Every service, with certificates and a fresh secret between the gateway and the edges."""
    certificates = Certificates(directory.tls)
    certificates.ensure(datetime.now(UTC))
    users = read_demo_users(KONG_FILE)
    operator = next(user for user in users.values() if "staff" in user.groups)
    table = ProcessTable(settings, directory, secrets.token_urlsafe(SECRET_BYTES), authorization(operator))
    return table.specs(), partial(stack_text, settings, certificates.authority, users)


@dataclass(frozen=True)
class ProcessTable:
    """Makes the specs. `settings` has a port for every server; `staff` are headers that may read the shard map.

    `secret` is what the gateway proves itself with to the edges.
    """

    settings: Settings
    directory: StackDirectory
    secret: str
    staff: Mapping[str, str]

    def specs(self) -> list[ProcessSpec]:
        """All processes, each after those that must be ready first."""
        instances = [self._query(1), self._query(2), self._edge(1), self._edge(2)]
        return [self._broker(), self._topics(), self._simulator(), self._processor(), *instances, self._gateway()]

    @property
    def _bootstrap(self) -> str:
        return f"{HOST}:{self.settings.kafka_port}"

    def _broker(self) -> ProcessSpec:
        broker = Broker(self.directory.data / "kafka", self.settings.kafka_port, self.settings.kafka_controller_port)
        probe = partial(probe_broker, broker)
        return ProcessSpec("broker", broker.command(), probe=probe, prepare=broker.prepare, stops_last=True)

    def _topics(self) -> ProcessSpec:
        command = (str(PROGRAMS / "kafka-topics"), str(TOPICS_FILE), "--bootstrap-server", self._bootstrap)
        return ProcessSpec("topics", command, after=("broker",), may_end=True)

    def _simulator(self) -> ProcessSpec:
        settings = self.settings
        values = settings.model_dump(include={"seed", "customers", "items", "limit"})
        values |= {"rows": settings.orders, "rate": f"{settings.rate:g}"}
        values |= {"database": self.directory.data / "orders.sqlite", **_metrics(settings.simulator_metrics_port)}
        spec = self._service("cdc-simulator", "cdc-simulator", settings.simulator_metrics_port, values)
        return replace(spec, may_end=True)

    def _processor(self) -> ProcessSpec:
        port = self.settings.processor_metrics_port
        values = {"checkpoints": self.directory.data / "checkpoints", **_metrics(port)}
        if self.settings.checkpoint_interval:
            values["checkpoint_interval"] = self.settings.checkpoint_interval
        spec = self._service("stream-processor", "stream-processor", port, values)
        pipelines = (str(file) for file in sorted(PIPELINES.glob("*.yaml")))
        # It waits for its topics itself, and takes the longest to start.
        return replace(spec, command=(*spec.command, *pipelines), after=())

    def _query(self, number: int) -> ProcessSpec:
        name, (port, shard_port, metrics_port) = f"query-{number}", self.settings.query_ports(number)
        values = self.settings.model_dump(include={"replicas", "session_timeout_ms"})
        values |= {"instance": name, "data_directory": self.directory.data / name, **_metrics(metrics_port)}
        values |= {"host": HOST, "port": port, "shard_port": shard_port, "advertised_host": HOST}
        return self._service(name, "query-service", metrics_port, values)

    def _edge(self, number: int) -> ProcessSpec:
        name, port = f"edge-{number}", self.settings.edge_port(number)
        queries = ",".join(f"{HOST}:{self.settings.query_ports(instance)[0]}" for instance in (1, 2))
        values = {"instance": name, "host": HOST, "port": port, "query_addresses": queries}
        return self._service(name, "ws-edge", port, {**values, "gateway_secret": self.secret})

    def _gateway(self) -> ProcessSpec:
        # The gateway is ready when it lets staff through to an edge that is ready.
        probe = partial(probe_http, f"http://{HOST}:{self.settings.gateway_http_port}/v1/shards", self.staff)
        prepare = partial(render_gateway, self.directory, self.settings, self.secret)
        command = envoy_command(self.directory.envoy_file)
        return ProcessSpec("gateway", command, probe=probe, after=("topics",), prepare=prepare)

    def _service(self, name: str, program: str, status_port: int, settings: Mapping[str, object]) -> ProcessSpec:
        prefix, values = program.upper().replace("-", "_"), {"kafka_bootstrap": self._bootstrap, **settings}
        environment = {f"{prefix}_{key.upper()}": str(value) for key, value in values.items()}
        probe = partial(probe_http, f"http://{HOST}:{status_port}/readyz")
        return ProcessSpec(name, (str(PROGRAMS / program), "run"), environment, probe, after=("topics",))


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


def _metrics(port: int) -> dict[str, object]:
    return {"metrics_host": HOST, "metrics_port": port}
