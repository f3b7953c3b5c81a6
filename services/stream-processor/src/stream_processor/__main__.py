"""The program: `stream-processor run | check | accept-dead-letters FILE...`."""

import signal
import sys
from argparse import ArgumentParser
from collections.abc import Sequence
from pathlib import Path
from threading import Event

import structlog
from confluent_kafka import KafkaException
from prometheus_client import CollectorRegistry

import statecast
from stream_processor import logs, pipeline
from stream_processor.contract import Contract
from stream_processor.errors import ConfigurationError, StreamProcessorError
from stream_processor.health import Readiness, serve
from stream_processor.metrics import Metrics
from stream_processor.pipeline import Pipeline
from stream_processor.plan import check_together
from stream_processor.settings import load
from stream_processor.topics import Topics

log = structlog.get_logger()


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the program and returns its exit status: 0 stopped, 1 failed while running, 2 wrong input."""
    chosen = _parser().parse_args(arguments)
    logs.configure()
    try:
        contract = Contract(statecast.descriptor_set())
        pipelines = [pipeline.read(file, contract) for file in dict.fromkeys(chosen.files)]
        check_together(pipelines)
        COMMANDS[chosen.command](pipelines, contract)
    except StreamProcessorError as error:
        sys.stderr.write(f"stream-processor: {error}\n")
        return error.exit_status
    return 0


def _run(pipelines: Sequence[Pipeline], contract: Contract) -> None:
    # Spark takes seconds to import; `check` must not wait for it.
    from stream_processor.run import Runner

    settings = load()
    stopping = Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopping.set())
    metrics = Metrics(CollectorRegistry())
    readiness = Readiness(metrics)
    with serve(settings.metrics_host, settings.metrics_port, metrics, readiness) as port:
        log.info("serving metrics and health", host=settings.metrics_host, port=port)
        Runner(settings, contract, metrics, readiness, stopping).run(pipelines)


def _check(pipelines: Sequence[Pipeline], contract: Contract) -> None:  # noqa: ARG001  a command's signature
    for each in pipelines:
        log.info("fine", file=each.file, pipeline=each.name)


def _accept(pipelines: Sequence[Pipeline], contract: Contract) -> None:  # noqa: ARG001  a command's signature
    from stream_processor.run import dead_letter_limits

    settings = load()
    try:
        for limit in dead_letter_limits(pipelines, Topics(settings.kafka_bootstrap), settings):
            log.info("accepted", topic=limit.topic, end=limit.accept())
    except KafkaException as error:
        raise ConfigurationError(f"no answer from Kafka at {settings.kafka_bootstrap}: {error}") from error


COMMANDS = {"run": _run, "check": _check, "accept-dead-letters": _accept}


def _parser() -> ArgumentParser:
    parser = ArgumentParser(prog="stream-processor", description="Keeps grouped state in keyed topics.")
    commands = parser.add_subparsers(dest="command", required=True)
    helps = {
        "run": "run the pipelines until SIGTERM",
        "check": "check pipeline files against the contract, without Spark and Kafka",
        "accept-dead-letters": "count the dead letters of the pipelines' sources from now on",
    }
    for command, text in helps.items():
        commands.add_parser(command, help=text).add_argument("files", nargs="+", type=Path, metavar="FILE")
    return parser


if __name__ == "__main__":
    sys.exit(main())
