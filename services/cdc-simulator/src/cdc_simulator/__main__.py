"""The command `cdc-simulator`: puts the parts together and runs them."""

import argparse
import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import closing
from functools import partial
from threading import Event

import structlog
from confluent_kafka import Producer
from prometheus_client import CollectorRegistry

from cdc_simulator.database import Database, create_if_new
from cdc_simulator.domain import DatabaseParameters
from cdc_simulator.domains import choose_domain, domain_names
from cdc_simulator.metrics import Metrics, Readiness
from cdc_simulator.pacing import Clock
from cdc_simulator.postgres import PostgresDatabase, PostgresTables, open_when_there
from cdc_simulator.publication import PublishedLog, ReadByConnector
from cdc_simulator.publisher import Publisher
from cdc_simulator.settings import Settings
from cdc_simulator.simulator import Simulator
from cdc_simulator.tables import ChangeLog, Tables
from statecast_service.build import add_version
from statecast_service.errors import PortInUseError, ServiceError
from statecast_service.health import HealthServer
from statecast_service.kafka import connect
from statecast_service.logs import configure_logs
from statecast_service.settings import describe_settings, load_settings

EXIT_STATUSES = """exit status:
  0  it was told to stop (SIGTERM, SIGINT), or made CDC_SIMULATOR_LIMIT changes and its sink has them all
  1  the database, Kafka or the metrics port fails; the last line says what to do
  2  a setting or an argument is wrong"""

log = structlog.get_logger()


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    stopping = Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopping.set())
    try:
        settings = load_settings(Settings, domain=options.domain)
        configure_logs(settings.log_level)
        _run(settings, stopping.is_set)
    except ServiceError as error:
        sys.stderr.write(f"cdc-simulator: {error}\n")
        # A port that is taken may be free at the next start, which a supervisor tries after status 1.
        return 1 if isinstance(error, PortInUseError) else error.exit_status
    return 0


def _run(settings: Settings, stopping: Callable[[], bool]) -> None:
    metrics = Metrics(CollectorRegistry())
    readiness = Readiness("the database is being opened")
    run_on = _run_on_postgres if settings.sink == "postgres" else _run_on_kafka
    with HealthServer(settings, metrics.registry, readiness=lambda: readiness.reason) as health_server:
        log.info("serving", metrics_port=health_server.port)
        run_on(settings, metrics, readiness, stopping)


def _run_on_kafka(settings: Settings, metrics: Metrics, readiness: Readiness, stopping: Callable[[], bool]) -> None:
    clock, domain, parameters = Clock(), choose_domain(settings.domain), _parameters(settings)
    with closing(Database(settings.database_file())) as database:
        is_new = create_if_new(database, domain, parameters, clock.now_us())
        change_log = ChangeLog(database, domain)
        tables = Tables(database, domain)
        log.info(
            "database open",
            path=str(database.path),
            domain=domain.name,
            new=is_new,
            epoch=change_log.epoch,
            rows={name: len(rows) for name, rows in tables.rows.items()},
            committed_lsn=tables.log_sequence_number,
            acknowledged_lsn=change_log.acknowledged_lsn,
        )
        producer = partial(connect, Producer, settings)
        start = change_log.epoch, change_log.acknowledged_lsn
        publisher = Publisher(settings.kafka_bootstrap, settings.topics(), *start, metrics, producer)
        publication = PublishedLog(change_log, publisher, clock)
        simulator = Simulator(domain, parameters, tables, publication, settings, readiness, metrics, clock)
        if publisher.wait_for_topics(readiness, clock, stopping):
            simulator.run(stopping)


def _run_on_postgres(settings: Settings, metrics: Metrics, readiness: Readiness, stopping: Callable[[], bool]) -> None:
    clock, domain, parameters = Clock(), choose_domain(settings.domain), _parameters(settings)
    with closing(PostgresDatabase(settings.postgres_url.get_secret_value(), domain.name)) as database:
        tables = PostgresTables(database, domain)
        simulator = Simulator(domain, parameters, tables, ReadByConnector(tables), settings, readiness, metrics, clock)
        if open_when_there(tables, parameters, readiness, clock, stopping):
            simulator.run(stopping)


def _parameters(settings: Settings) -> DatabaseParameters:
    return DatabaseParameters(settings.seed, settings.rows, settings.customers, settings.items)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="cdc-simulator",
        description="A database in miniature that streams its changes into Kafka, as a CDC connector would.",
        epilog=f"environment variables [and defaults]:\n{describe_settings(Settings)}\n\n{EXIT_STATUSES}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_version(parser, "cdc-simulator")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    run = commands.add_parser("run", help="make the database if there is none, then change it and publish the changes")
    run.add_argument(
        "--domain",
        metavar="NAME",
        help=f"what the database is about: {', '.join(domain_names())}; overrides CDC_SIMULATOR_DOMAIN",
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
