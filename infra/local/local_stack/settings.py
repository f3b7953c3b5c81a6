"""The settings of the local stack: environment variables that begin with LOCAL_STACK_, and a port for every server."""

import sys
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator
from pydantic_settings import SettingsConfigDict

from local_stack import LocalStackError
from local_stack.domains import FIRST, chosen_domains, named_for
from local_stack.stack_directory import StackDirectory
from statecast_service.settings import Port, ServiceSettings
from testkit.ports import free_ports, is_free
from testkit.postgres import Postgres

ROOT = Path(__file__).resolve().parents[3]  # the checkout of the repository: the stack runs from it and nowhere else
PROGRAMS = Path(sys.executable).parent  # of the virtual environment
KONG_FILE = ROOT / "infra" / "kong" / "kong.yaml"
HOST = "127.0.0.1"
QUERIES = ("query-1", "query-2")
EDGES = ("edge-1", "edge-2")


class Settings(ServiceSettings):
    """The settings of a stack; README.md explains each. A port of 0 means any free port."""

    model_config = SettingsConfigDict(env_prefix="LOCAL_STACK_")

    directory: Annotated[Path, AfterValidator(Path.absolute)] = ROOT / ".run"

    programs: Path = PROGRAMS
    kong_file: Path = KONG_FILE

    domain: str = FIRST
    source: Literal["simulator", "postgres"] = "simulator"
    rate: float = Field(default=50, ge=0)
    orders: int = Field(default=1000, ge=0)
    rows: int = Field(default=1000, ge=1)
    customers: int = Field(default=100, ge=1)
    items: int = Field(default=200, ge=1)
    seed: int = 1
    limit: int = Field(default=0, ge=0)

    kafka_bootstrap: str = ""
    replicas: int = Field(default=2, ge=1, le=2)
    session_timeout_ms: int = Field(default=2500, ge=1000)
    checkpoint_interval: str = ""
    driver_memory: str = ""

    start_timeout_s: float = Field(default=600, gt=0)
    stop_grace_s: float = Field(default=15, gt=0)
    restart_first_s: float = Field(default=0.5, ge=0)
    restart_max_s: float = Field(default=8, gt=0)
    restart_limit: int = Field(default=5, ge=1)
    restart_window_s: float = Field(default=60, gt=0)

    demo_s: float = Field(default=60, gt=0)
    demo_lines_s: float = Field(default=30, gt=0)

    kafka_port: Port = 0
    kafka_controller_port: Port = 0
    gateway_http_port: Port = 0
    gateway_https_port: Port = 0
    gateway_admin_port: Port = 0
    postgres_port: Port = 0
    connect_port: Port = 0
    simulator_metrics_port: Port = 0
    simulator_bookings_metrics_port: Port = 0
    simulator_invoices_metrics_port: Port = 0
    simulator_odds_metrics_port: Port = 0
    simulator_positions_metrics_port: Port = 0
    processor_metrics_port: Port = 0
    query_1_port: Port = 0
    query_1_shard_port: Port = 0
    query_1_metrics_port: Port = 0
    query_2_port: Port = 0
    query_2_shard_port: Port = 0
    query_2_metrics_port: Port = 0
    edge_1_port: Port = 0
    edge_2_port: Port = 0

    @model_validator(mode="after")
    def _runs_domains(self) -> Self:
        try:
            domains = self.domains
        except ValueError as error:
            raise ValueError(f"{self.variable('domain')}: {error}") from None
        if self.source != "simulator" and FIRST not in domains:
            source, domain = self.variable("source"), self.variable("domain")
            raise ValueError(f"{source}={self.source} is of {FIRST} alone: add {FIRST} to {domain}={self.domain}")
        return self

    @property
    def domains(self) -> tuple[str, ...]:
        """The names of the domains that run."""
        return chosen_domains(self.domain)

    @property
    def simulated(self) -> tuple[str, ...]:
        """The domains that run and have a simulator."""
        return tuple(name for name in self.domains if _metrics_port(name) in type(self).model_fields)

    @property
    def files(self) -> StackDirectory:
        return StackDirectory(self.directory, "data" if self.source == "simulator" else f"data-{self.source}")

    @property
    def bootstrap(self) -> str:
        """The addresses of the brokers: the stack's own, or those of a cluster that runs without it."""
        return self.kafka_bootstrap or self.address_of("kafka")

    def as_environment(self) -> dict[str, str]:
        """Returns the environment variables that make equal settings in another process."""
        return {self.variable(name): str(value) for name, value in self}

    def port_of(self, server: str) -> int:
        """Returns the port of a server that is named as its setting: `gateway-http`, `query-1`, `query-1-shard`."""
        return int(getattr(self, f"{server.replace('-', '_')}_port"))

    def address_of(self, server: str) -> str:
        return f"{HOST}:{self.port_of(server)}"

    def with_ports(self) -> Self:
        """Returns the same with a free port for each 0.

        Raises LocalStackError for one that is taken, or asked for twice.
        """
        ports = {name: value for name, value in self if name.endswith("_port")}
        asked = {name: port for name, port in ports.items() if port}
        for port in asked.values():
            users = [self.variable(other) for other in asked if asked[other] == port]
            if len(users) > 1:
                raise LocalStackError(f"{' and '.join(users)} both ask for port {port}")
            if not is_free(port):
                raise LocalStackError(f"port {port} is in use: free it, or set {users[0]} to another port or to 0")
        free = (port for port in free_ports(len(ports) + len(asked)) if port not in asked.values())
        return self.model_copy(update={name: port or next(free) for name, port in ports.items()})


def simulator_server(domain: str) -> str:
    """Names the server of a domain's simulator metrics, for its port."""
    return f"{named_for('simulator', domain)}-metrics"


def _metrics_port(domain: str) -> str:
    return f"{simulator_server(domain)}-port".replace("-", "_")


def postgres_of(settings: Settings) -> Postgres:
    """Returns the stack's PostgreSQL, which runs when it is the source. `settings` has a port for every server."""
    return Postgres(settings.files.data / "postgres", settings.postgres_port)
