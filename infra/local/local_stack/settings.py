"""The settings of the local stack: environment variables that begin with LOCAL_STACK_."""

import sys
from pathlib import Path

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict

ROOT = Path(__file__).resolve().parents[3]
"""The checkout of the repository: the stack runs from it and nowhere else."""

PROGRAMS = Path(sys.executable).parent
"""Where the programs of the virtual environment are."""

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
    """What a stack is started with. Times are in the unit that the name ends with."""

    directory: Path = Field(default=ROOT / ".run", description="Where data, logs and stack.json are kept.")

    rate: float = Field(default=50, ge=0, description="Changes per second that the simulator makes.")
    orders: int = Field(default=1000, ge=0, description="Orders in the table at the first start.")
    customers: int = Field(default=100, ge=1, description="Customers who own the orders.")
    items: int = Field(default=200, ge=1, description="Articles that the orders name.")
    seed: int = Field(default=1, description="The seed of the simulator: the same one makes the same changes.")
    limit: int = Field(default=0, ge=0, description="Changes after which the simulator ends; 0 never.")

    replicas: int = Field(default=2, ge=1, le=2, description="Query instances that hold each partition.")
    session_timeout_ms: int = Field(
        default=2500, ge=1000, description="How long a killed query instance counts as a member of its group."
    )
    checkpoint_interval: str = Field(
        default="", description="The processor's checkpoint interval, for example 10s; empty keeps the pipelines' own."
    )

    start_timeout_s: float = Field(default=180, gt=0, description="How long the stack may take to become ready.")
    stop_grace_s: float = Field(default=15, gt=0, description="How long a process may take to end before it is killed.")
    restart_first_s: float = Field(default=0.5, ge=0, description="The pause before a first restart; it doubles.")
    restart_most_s: float = Field(default=8, gt=0, description="The longest pause before a restart.")
    restart_limit: int = Field(default=5, ge=1, description="Ends of one process in the window that fail the stack.")
    restart_window_s: float = Field(default=60, gt=0, description="The window in which ends are counted.")

    demo_s: float = Field(default=60, gt=0, description="How long the demo shows orders on a terminal.")
    demo_lines_s: float = Field(default=30, gt=0, description="How long the demo shows orders without a terminal.")

    def as_environment(self) -> dict[str, str]:
        """The environment variables that make equal settings in another process."""
        return {f"LOCAL_STACK_{name.upper()}": str(value) for name, value in self.model_dump().items()}

    def query_ports(self, number: int) -> tuple[int, int, int]:
        """The public, internal and metrics port of the query-service `number`, 1 or 2."""
        if number == 1:
            return self.query_1_port, self.query_1_shard_port, self.query_1_metrics_port
        return self.query_2_port, self.query_2_shard_port, self.query_2_metrics_port

    def edge_port(self, number: int) -> int:
        """The port of the ws-edge `number`, 1 or 2."""
        return self.edge_1_port if number == 1 else self.edge_2_port
