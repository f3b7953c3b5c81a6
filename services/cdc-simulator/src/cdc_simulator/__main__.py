"""The command `cdc-simulator`: puts the parts together and runs them."""

import argparse
import signal
import sys
from collections.abc import Sequence
from contextlib import closing
from types import FrameType

import structlog
from confluent_kafka import Producer
from prometheus_client import CollectorRegistry

from cdc_simulator.basis import Basis
from cdc_simulator.change_log import ChangeLog
from cdc_simulator.clock import SystemClock
from cdc_simulator.database import Database, create_if_new
from cdc_simulator.domain_choice import domain_names
from cdc_simulator.errors import SimulatorError
from cdc_simulator.health_server import health_server
from cdc_simulator.log_format import configure_log
from cdc_simulator.metrics import Metrics
from cdc_simulator.pacing import Pace
from cdc_simulator.publisher import Publisher
from cdc_simulator.readiness import Readiness
from cdc_simulator.settings import Settings, describe_settings, load_settings
from cdc_simulator.simulator import Bounds, Simulator
from cdc_simulator.tables import Tables
from cdc_simulator.topic_wait import wait_for_topics

EXIT_STATUSES = """exit status:
  0  it was told to stop (SIGTERM, SIGINT), or made CDC_SIMULATOR_LIMIT changes and Kafka has them all
  1  the database, Kafka or the metrics port fails; the last line says what to do
  2  a setting or an argument is wrong"""

log = structlog.get_logger()


class StopSignal:
    """Remembers that the process was asked to end."""

    def __init__(self) -> None:
        self._came = False

    def __call__(self) -> bool:
        """Returns whether it was asked."""
        return self._came

    def note(self, _number: int, _frame: FrameType | None) -> None:
        """The signal handler."""
        self._came = True


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command and returns its exit status."""
    options = _parser().parse_args(arguments)
    stopping = StopSignal()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stopping.note)
    try:
        settings = load_settings(options.domain)
        configure_log(sys.stderr, settings.log_level)
        _run(settings, stopping)
    except SimulatorError as error:
        sys.stderr.write(f"cdc-simulator: {error}\n")
        return error.exit_status
    return 0


def _run(settings: Settings, stopping: StopSignal) -> None:
    clock = SystemClock()
    metrics = Metrics(CollectorRegistry())
    readiness = Readiness("the database is being opened")
    domain, topics, path = settings.chosen_domain(), settings.topics(), settings.database_file()
    with (
        health_server(settings.metrics_host, settings.metrics_port, metrics.registry, readiness),
        closing(Database(path)) as database,
    ):
        basis = Basis(settings.seed, settings.rows, settings.customers, settings.items)
        is_new = create_if_new(database, domain, basis, clock.now_us())
        change_log = ChangeLog(database, domain)
        tables = Tables(database, domain)
        log.info(
            "database open",
            path=str(path),
            domain=domain.name,
            new=is_new,
            epoch=change_log.epoch,
            rows={name: len(rows) for name, rows in tables.rows.items()},
            committed_lsn=tables.log_sequence_number,
            acknowledged_lsn=change_log.acknowledged_lsn,
        )
        publisher = Publisher(
            settings.kafka_bootstrap, topics, change_log.epoch, change_log.acknowledged_lsn, metrics, Producer
        )
        simulator = Simulator(
            domain,
            basis,
            tables,
            change_log,
            publisher,
            Pace(settings.rate, clock.monotonic_s()),
            Bounds(settings.limit, settings.backlog, settings.drain_s),
            readiness,
            metrics,
            clock,
        )
        if wait_for_topics(publisher.producer, topics.values(), settings.kafka_bootstrap, readiness, clock, stopping):
            simulator.run(stopping)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="cdc-simulator",
        description="A database in miniature that streams its changes into Kafka, as a CDC connector would.",
        epilog=f"environment variables [and defaults]:\n{describe_settings()}\n\n{EXIT_STATUSES}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    run = commands.add_parser(
        "run", help="make the database if it is not there, then change it and publish the changes"
    )
    run.add_argument(
        "--domain",
        metavar="NAME",
        help=f"what the database is about: {', '.join(domain_names())}; goes before CDC_SIMULATOR_DOMAIN",
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
