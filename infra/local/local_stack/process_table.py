"""The table of the stack's processes: what runs, with which environment, after what, and when it is ready."""

from dataclasses import dataclass

import httpx

from local_stack.broker import Broker
from local_stack.gateway import Gateway
from local_stack.probe import BrokerProbe, HttpProbe
from local_stack.process_spec import ProcessSpec
from local_stack.settings import PROGRAMS, ROOT, Settings
from local_stack.stack_directory import StackDirectory

TOPICS_FILE = ROOT / "infra" / "kafka" / "topics.yaml"
PIPELINES = ROOT / "services" / "stream-processor" / "pipelines" / "orders"
HOST = "127.0.0.1"


@dataclass(frozen=True)
class ProcessTable:
    """Makes the specs. `settings` has a port for every server; `secret` is what the gateway proves itself with."""

    settings: Settings
    directory: StackDirectory
    gateway: Gateway
    secret: str
    client: httpx.AsyncClient

    def specs(self) -> list[ProcessSpec]:
        """All processes, each after those that it needs to be ready."""
        return [
            self._broker(),
            self._topics(),
            self._simulator(),
            self._processor(),
            self._query(1),
            self._query(2),
            self._edge(1),
            self._edge(2),
            self._gateway(),
        ]

    @property
    def _bootstrap(self) -> str:
        return f"{HOST}:{self.settings.kafka_port}"

    def _broker(self) -> ProcessSpec:
        settings = self.settings
        broker = Broker(self.directory.data / "kafka", settings.kafka_port, settings.kafka_controller_port)
        return ProcessSpec(
            "broker", tuple(broker.command()), probe=BrokerProbe(broker), prepare=broker.prepare, stops_last=True
        )

    def _topics(self) -> ProcessSpec:
        command = (_program("kafka-topics"), str(TOPICS_FILE), "--bootstrap-server", self._bootstrap)
        return ProcessSpec("topics", command, after=("broker",), may_end=True)

    def _simulator(self) -> ProcessSpec:
        settings = self.settings
        environment = {
            "KAFKA_BOOTSTRAP": self._bootstrap,
            "DATABASE": str(self.directory.data / "orders.sqlite"),
            "SEED": str(settings.seed),
            "ROWS": str(settings.orders),
            "CUSTOMERS": str(settings.customers),
            "ITEMS": str(settings.items),
            "RATE": f"{settings.rate:g}",
            "LIMIT": str(settings.limit),
            **_metrics(settings.simulator_metrics_port),
        }
        return ProcessSpec(
            "cdc-simulator",
            (_program("cdc-simulator"), "run"),
            _prefixed("CDC_SIMULATOR", environment),
            self._ready(settings.simulator_metrics_port),
            after=("topics",),
            may_end=True,
        )

    def _processor(self) -> ProcessSpec:
        settings = self.settings
        environment = {
            "KAFKA_BOOTSTRAP": self._bootstrap,
            "CHECKPOINTS": str(self.directory.data / "checkpoints"),
            **_metrics(settings.processor_metrics_port),
        }
        if settings.checkpoint_interval:
            environment["CHECKPOINT_INTERVAL"] = settings.checkpoint_interval
        pipelines = (str(file) for file in sorted(PIPELINES.glob("*.yaml")))
        return ProcessSpec(
            "stream-processor",
            (_program("stream-processor"), "run", *pipelines),
            _prefixed("STREAM_PROCESSOR", environment),
            self._ready(settings.processor_metrics_port),
        )

    def _query(self, number: int) -> ProcessSpec:
        port, shard_port, metrics_port = self.settings.query_ports(number)
        environment = {
            "KAFKA_BOOTSTRAP": self._bootstrap,
            "INSTANCE": f"query-{number}",
            "HOST": HOST,
            "PORT": str(port),
            "SHARD_PORT": str(shard_port),
            "ADVERTISED_HOST": HOST,
            "DATA_DIRECTORY": str(self.directory.data / f"query-{number}"),
            "REPLICAS": str(self.settings.replicas),
            "SESSION_TIMEOUT_MS": str(self.settings.session_timeout_ms),
            **_metrics(metrics_port),
        }
        return ProcessSpec(
            f"query-{number}",
            (_program("query-service"), "run"),
            _prefixed("QUERY_SERVICE", environment),
            self._ready(metrics_port),
            after=("topics",),
        )

    def _edge(self, number: int) -> ProcessSpec:
        port = self.settings.edge_port(number)
        queries = (self.settings.query_ports(each)[0] for each in (1, 2))
        environment = {
            "HOST": HOST,
            "PORT": str(port),
            "QUERY_ADDRESSES": ",".join(f"{HOST}:{each}" for each in queries),
            "KAFKA_BOOTSTRAP": self._bootstrap,
            "GATEWAY_SECRET": self.secret,
            "INSTANCE": f"edge-{number}",
        }
        return ProcessSpec(
            f"edge-{number}",
            (_program("ws-edge"), "run"),
            _prefixed("WS_EDGE", environment),
            self._ready(port),
            after=("topics",),
        )

    def _gateway(self) -> ProcessSpec:
        return ProcessSpec(
            "gateway",
            self.gateway.command(),
            probe=HttpProbe(self.client, self.gateway.probe_url, self.gateway.probe_headers),
            after=("topics",),
            prepare=self.gateway.prepare,
        )

    def _ready(self, port: int) -> HttpProbe:
        return HttpProbe(self.client, f"http://{HOST}:{port}/readyz")


def _program(name: str) -> str:
    return str(PROGRAMS / name)


def _metrics(port: int) -> dict[str, str]:
    return {"METRICS_HOST": HOST, "METRICS_PORT": str(port)}


def _prefixed(prefix: str, environment: dict[str, str]) -> dict[str, str]:
    return {f"{prefix}_{name}": value for name, value in environment.items()}
