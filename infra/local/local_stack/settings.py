"""The settings of the local stack: environment variables that begin with LOCAL_STACK_, and a port for every server."""

import sys
from pathlib import Path

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict

from local_stack import PortInUseError
from testkit.ports import free_ports, is_free

ROOT = Path(__file__).resolve().parents[3]  # the checkout of the repository: the stack runs from it and nowhere else
PROGRAMS = Path(sys.executable).parent  # of the virtual environment
HOST = "127.0.0.1"
PORT = Field(default=0, ge=0, le=65_535)


class PortSettings(BaseSettings):
    """The ports of the stack's servers, all on 127.0.0.1; 0 takes a free one."""

    model_config = SettingsConfigDict(env_prefix="LOCAL_STACK_", frozen=True)

    kafka_port: int = PORT
    kafka_controller_port: int = PORT
    gateway_http_port: int = PORT
    gateway_https_port: int = PORT
    gateway_admin_port: int = PORT
    simulator_metrics_port: int = PORT
    processor_metrics_port: int = PORT
    query_1_port: int = PORT
    query_1_shard_port: int = PORT
    query_1_metrics_port: int = PORT
    query_2_port: int = PORT
    query_2_shard_port: int = PORT
    query_2_metrics_port: int = PORT
    edge_1_port: int = PORT
    edge_2_port: int = PORT


class Settings(PortSettings):
    """What a stack is started with; README.md says what each setting means."""

    directory: Path = ROOT / ".run"

    rate: float = Field(default=50, ge=0)
    orders: int = Field(default=1000, ge=0)
    customers: int = Field(default=100, ge=1)
    items: int = Field(default=200, ge=1)
    seed: int = 1
    limit: int = Field(default=0, ge=0)

    replicas: int = Field(default=2, ge=1, le=2)
    session_timeout_ms: int = Field(default=2500, ge=1000)
    checkpoint_interval: str = ""

    start_timeout_s: float = Field(default=180, gt=0)
    stop_grace_s: float = Field(default=15, gt=0)
    restart_first_s: float = Field(default=0.5, ge=0)
    restart_max_s: float = Field(default=8, gt=0)
    restart_limit: int = Field(default=5, ge=1)
    restart_window_s: float = Field(default=60, gt=0)

    demo_s: float = Field(default=60, gt=0)
    demo_lines_s: float = Field(default=30, gt=0)

    def as_environment(self) -> dict[str, str]:
        """The environment variables that make equal settings in another process."""
        return {variable(name): str(value) for name, value in self.model_dump().items()}

    def query_ports(self, number: int) -> tuple[int, int, int]:
        """The public, internal and metrics port of the query-service `number`, 1 or 2."""
        if number == 1:
            return self.query_1_port, self.query_1_shard_port, self.query_1_metrics_port
        return self.query_2_port, self.query_2_shard_port, self.query_2_metrics_port

    def edge_port(self, number: int) -> int:
        """The port of the ws-edge `number`, 1 or 2."""
        return self.edge_1_port if number == 1 else self.edge_2_port


def assign_ports(ports: PortSettings) -> dict[str, int]:
    """Returns a port for every field of `ports`: the one that was asked for, or a free one where that is 0.

    Raises PortInUseError when a port that was asked for is taken, or was asked for twice.
    """
    wanted = {name: getattr(ports, name) for name in PortSettings.model_fields}
    owners: dict[int, str] = {}
    for name, port in wanted.items():
        if not port:
            continue
        if port in owners:
            raise PortInUseError(f"{variable(name)} and {variable(owners[port])} both ask for port {port}")
        owners[port] = name
        if not is_free(port):
            raise PortInUseError(
                f"port {port} is in use: end what listens there, or set {variable(name)} to another port or to 0"
            )
    free = iter([port for port in free_ports(len(wanted) + len(owners)) if port not in owners])
    return {name: port or next(free) for name, port in wanted.items()}


def variable(name: str) -> str:
    """The environment variable of a setting."""
    return f"LOCAL_STACK_{name.upper()}"
