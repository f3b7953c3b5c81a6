"""The source of a domain's changes: its simulator's own log, or a PostgreSQL that Debezium reads."""

import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from local_stack.domain_files import domains_directory
from local_stack.domains import FIRST, pipelines_of
from local_stack.process_spec import ProcessSpec
from local_stack.settings import Settings, postgres_of
from testkit.debezium import Connect, postgres_connector
from testkit.postgres import Postgres

TABLE = "orders"


@dataclass(frozen=True)
class Source:
    """The parts of a stack that depend on the source."""

    database: Sequence[ProcessSpec]
    """The processes that the simulator needs."""
    simulator: Mapping[str, object]
    """Settings of the simulator."""
    connector: Sequence[ProcessSpec]
    """The processes that read the simulator's tables."""
    pipelines: Sequence[Path]
    """The files of the pipelines that read its topics."""


def source_of(domain: str, settings: Settings) -> Source:
    """Returns the source of a domain.

    PostgreSQL is that of the orders; all other domains stay with their simulators.
    """
    if settings.source == "postgres" and domain == FIRST:
        return postgres_source(settings)
    return simulator_source(domain, settings)


def simulator_source(domain: str, settings: Settings) -> Source:
    """Returns a simulator that writes to its own file, and publishes its changes itself."""
    return Source([], {"database": settings.files.data / f"{domain}.sqlite"}, [], pipelines_of(domain))


def postgres_source(settings: Settings) -> Source:
    """Returns a simulator for PostgreSQL, with Debezium to publish the changes; writes the pipelines that read them."""
    postgres = postgres_of(settings)
    simulator = {"sink": "postgres", "postgres_url": postgres.dsn}
    directory = domains_directory(settings) / FIRST
    pipelines = [_reading_debezium(file, directory) for file in pipelines_of(FIRST)]
    return Source([_database(postgres)], simulator, [_connector(postgres, settings)], pipelines)


def _database(postgres: Postgres) -> ProcessSpec:
    def probe() -> str:
        return "" if postgres.answers() else f"no PostgreSQL answers at 127.0.0.1:{postgres.port}"

    # By SIGTERM it would wait for its clients, and a person's psql is one of them.
    return ProcessSpec(
        "postgres", postgres.command(), probe=probe, prepare=postgres.prepare, stops_by=signal.SIGINT, stops_last=True
    )


def _connector(postgres: Postgres, settings: Settings) -> ProcessSpec:
    directory, port = settings.files.data / "connect", settings.connect_port
    connect = Connect(directory, port, settings.bootstrap, postgres_connector(postgres, [TABLE]))
    # A publication of a table needs the table, which the simulator makes.
    after = ("topics", "cdc-simulator")
    return ProcessSpec("connect", connect.command(), probe=connect.unready_reason, after=after, prepare=connect.prepare)


def _reading_debezium(shipped: Path, directory: Path) -> Path:
    """Writes a pipeline that differs from the shipped one in the format of its source alone."""
    pipeline = yaml.safe_load(shipped.read_text())
    pipeline["source"]["format"] = "debezium-json"
    directory.mkdir(parents=True, exist_ok=True)
    file = directory / shipped.name
    file.write_text(yaml.safe_dump(pipeline, sort_keys=False))
    return file
