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

from cdc_simulator.change_log import ChangeLog
from cdc_simulator.clock import SystemClock
from cdc_simulator.database import Database, create_if_new
from cdc_simulator.errors import SimulatorError
from cdc_simulator.health_server import health_server
from cdc_simulator.initial_rows import initial_rows
from cdc_simulator.log_format import configure_log
from cdc_simulator.metrics import Metrics
from cdc_simulator.order_row import Shop
from cdc_simulator.order_table import OrderTable
from cdc_simulator.pacing import Pace
from cdc_simulator.publisher import Publisher
from cdc_simulator.readiness import Readiness
from cdc_simulator.settings import Settings, describe_settings, load_settings
from cdc_simulator.simulator import Bounds, Simulator
from cdc_simulator.topic_wait import wait_for_topic

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
    _parser().parse_args(arguments)
    stopping = StopSignal()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stopping.note)
    try:
        settings = load_settings()
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
    with (
        health_server(settings.metrics_host, settings.metrics_port, metrics.registry, readiness),
        closing(Database(settings.database)) as database,
    ):
        shop = Shop(settings.seed, settings.orders, settings.customers, settings.items)
        now_us = clock.now_us()
        is_new = create_if_new(database, shop, initial_rows(shop, now_us), now_us)
        change_log = ChangeLog(database)
        table = OrderTable(database)
        log.info(
            "database open",
            path=str(settings.database),
            new=is_new,
            epoch=change_log.epoch,
            rows=len(table),
            committed_lsn=table.log_sequence_number,
            acknowledged_lsn=change_log.acknowledged_lsn,
        )
        publisher = Publisher(
            settings.kafka_bootstrap,
            settings.topic,
            change_log.epoch,
            change_log.acknowledged_lsn,
            metrics,
            Producer,
        )
        if wait_for_topic(publisher.producer, settings.topic, settings.kafka_bootstrap, readiness, clock, stopping):
            Simulator(
                shop,
                table,
                change_log,
                publisher,
                Pace(settings.rate, clock.monotonic_s()),
                Bounds(settings.limit, settings.backlog, settings.drain_s),
                readiness,
                metrics,
                clock,
            ).run(stopping)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="cdc-simulator",
        description="An order database in miniature that streams its changes into Kafka, as a CDC connector would.",
        epilog=f"environment variables [and defaults]:\n{describe_settings()}\n\n{EXIT_STATUSES}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    commands.add_parser("run", help="make the database if it is not there, then change it and publish the changes")
    return parser


if __name__ == "__main__":
    sys.exit(main())
