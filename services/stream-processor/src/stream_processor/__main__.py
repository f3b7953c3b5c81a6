"""The program, which puts its parts together: `stream-processor COMMAND FILE...`; `--help` lists the commands."""

import logging
import signal
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from threading import Event

import structlog
from confluent_kafka import KafkaException
from prometheus_client import CollectorRegistry

from statecast.descriptors import MessageTypes
from statecast_domains import pipeline_file
from statecast_domains.derivation import policies_of
from statecast_domains.directories import DOMAIN_FILE, pipeline_files
from statecast_domains.domain_file import read_domain_file
from statecast_domains.errors import DomainFileError, PipelineFileError
from statecast_domains.row_topics import misread_topics
from statecast_service.build import add_version
from statecast_service.errors import ServiceError
from statecast_service.health import HealthServer
from statecast_service.logs import configure_logs
from statecast_service.settings import load_settings
from stream_processor import shapes
from stream_processor.errors import BrokerLostError, ConfigurationError
from stream_processor.metrics import Metrics, Readiness
from stream_processor.pipeline.fields import Contract
from stream_processor.pipeline.pipeline import Pipeline, explain
from stream_processor.run.plan import check_together
from stream_processor.run.status_line import open_status_line
from stream_processor.settings import Settings

# Kafka's clients and Spark's sessions are of no use to `check`: so each command imports its own parts of `run`.

log = structlog.get_logger()


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the program and returns its exit status: 0 stopped, 1 failed while running, 2 wrong input."""
    options = _parser().parse_args(arguments)
    if options.command == "schema":
        sys.stdout.write(pipeline_file.schema_text())
        return 0
    configure_logs()
    # It warns about invalid expressions, which the error reports, too.
    logging.getLogger("sqlglot").setLevel(logging.ERROR)
    try:
        settings, files = load_settings(Settings), pipeline_files(options.files)
        contract = Contract(settings.with_descriptors(MessageTypes.read).descriptor_set)
        if options.command == "check":
            return _check(files, contract)
        options.run(files, contract, settings, options)
    except ServiceError as error:
        sys.stderr.write(f"stream-processor: {error}\n")
        return error.exit_status
    return 0


def _check(files: Sequence[Path], contract: Contract) -> int:
    sound: list[Pipeline] = []
    for file in files:
        try:
            pipeline = shapes.read(file, contract)
            check_together([*sound, pipeline])
            _check_beside(file, pipeline)
        except DomainFileError as error:
            sys.stderr.write(f"stream-processor: {error}\n")
        else:
            sound.append(pipeline)
            log.info("valid", file=str(file), pipeline=pipeline.name)
    return 0 if len(sound) == len(files) else PipelineFileError.exit_status


def _check_beside(file: Path, pipeline: Pipeline) -> None:
    """Raises DomainFileError for a topic that is not kept as it is read, as far as a domain file beside it says."""
    beside = file.parent / DOMAIN_FILE
    if beside.exists():
        for key, problem in misread_topics(pipeline.definition, policies_of(read_domain_file(beside))):
            raise PipelineFileError(str(file), key, problem)


def _read_all(files: Sequence[Path], contract: Contract) -> list[Pipeline]:
    """Returns the pipelines of all files. Raises DomainFileError for the first that is wrong."""
    pipelines = [shapes.read(file, contract) for file in files]
    check_together(pipelines)
    return pipelines


def _run(files: Sequence[Path], contract: Contract, settings: Settings, options: Namespace) -> None:
    from stream_processor.run.runner import Runner
    from stream_processor.run.session import launch

    launch(settings)
    stopping = Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopping.set())
    status = open_status_line()
    configure_logs(stream=status)
    metrics = Metrics(CollectorRegistry())
    readiness = Readiness(metrics)
    probe, notes = lambda: readiness.reason, lambda: readiness.notes
    with HealthServer(settings, metrics.registry, readiness=probe, notes=notes) as health:
        log.info("serving metrics and health", host=settings.metrics_host, port=health.port)
        show = status.show if status else lambda _: None
        directories = [path for path in options.files if path.is_dir()]
        Runner(settings, contract, metrics, readiness, stopping, show, directories).run(files)


def _explain(files: Sequence[Path], contract: Contract, settings: Settings, _: Namespace) -> None:
    from stream_processor.run.queries import physical_plan
    from stream_processor.run.session import start_session, stop

    pipelines = _read_all(files, contract)
    for pipeline in pipelines:
        sys.stdout.write("\n".join(explain(pipeline)) + "\n\n")
    sys.stdout.flush()
    spark = start_session(settings)
    try:
        for pipeline in pipelines:
            plan = physical_plan(pipeline, spark, contract)
            sys.stdout.write(f"{pipeline.name}, as Spark runs it\n{plan}\n")
    finally:
        stop(spark, [])


def _archive(files: Sequence[Path], contract: Contract, settings: Settings, _: Namespace) -> None:
    from stream_processor.run.class_archive import archive_classes

    archive_classes(_read_all(files, contract), contract, settings)


def _accept(files: Sequence[Path], contract: Contract, settings: Settings, _: Namespace) -> None:
    from stream_processor.run.checkpoints import open_checkpoints
    from stream_processor.run.letters import DeadLetterLimits, read_dead_letters
    from stream_processor.run.session import start_session
    from stream_processor.run.topics import Topics

    pipelines = _read_all(files, contract)
    notes = open_checkpoints(settings.checkpoints, partial(start_session, settings))
    try:
        limits = DeadLetterLimits(pipelines, Topics(settings).ends_of, partial(read_dead_letters, settings), notes)
        for topic in limits.by_topic:
            log.info("accepted", topic=topic, end=limits.accept(topic))
    except KafkaException as error:
        raise ConfigurationError(f"no answer from Kafka at {settings.kafka_bootstrap}: {error}") from error


def _replay(files: Sequence[Path], contract: Contract, settings: Settings, options: Namespace) -> None:
    from stream_processor.run.replay import replay_all

    pipelines = _read_all(files, contract)
    try:
        replay_all(pipelines, settings, options.reason, options.dry_run)
    except KafkaException as error:
        raise BrokerLostError(f"Kafka at {settings.kafka_bootstrap} did not take part: {error}") from error


COMMANDS = {
    "run": (_run, "run the pipelines until SIGTERM"),
    "check": (None, "check pipeline files against the contract, without Spark and Kafka"),
    "explain": (_explain, "describe what the pipelines do, and how Spark runs them; without Kafka"),
    "archive-classes": (_archive, "make the archive that Spark's JVM starts from, by these pipelines; without Kafka"),
    "accept-dead-letters": (_accept, "count the dead letters of the pipelines' sources from now on"),
    "replay-dead-letters": (
        _replay,
        "put the dead letters of the pipelines' sources back, once what was wrong is corrected",
    ),
}


def _parser() -> ArgumentParser:
    parser = ArgumentParser(prog="stream-processor", description="Keeps grouped state in keyed topics.")
    add_version(parser, "stream-processor")
    commands = parser.add_subparsers(dest="command", required=True)
    for command, (run, text) in COMMANDS.items():
        subparser = commands.add_parser(command, help=text)
        subparser.set_defaults(run=run)
        subparser.add_argument(
            "files", nargs="+", type=Path, metavar="FILE", help="a pipeline's file, or a directory of them"
        )
    replay = commands.choices["replay-dead-letters"]
    replay.add_argument("--reason", default="", metavar="TEXT", help="only those with this text in their reason")
    replay.add_argument("--dry-run", action="store_true", help="say what would be put back, and do nothing")
    commands.add_parser("schema", help="print the JSON Schema of a pipeline's file")
    return parser


if __name__ == "__main__":
    sys.exit(main())
