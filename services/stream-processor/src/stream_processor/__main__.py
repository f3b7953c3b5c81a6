"""The program: `stream-processor COMMAND FILE...`, the commands being those of `--help`, and `schema`."""

import signal
import sys
from argparse import ArgumentParser
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from threading import Event

import structlog
from confluent_kafka import KafkaException
from prometheus_client import CollectorRegistry

import statecast
from stream_processor import logs
from stream_processor.definition import explanation, pipeline_check, pipeline_schema
from stream_processor.definition.contract import Contract
from stream_processor.definition.pipeline import Pipeline
from stream_processor.errors import BrokerLostError, ConfigurationError, PipelineFileError, StreamProcessorError
from stream_processor.metrics import Metrics
from stream_processor.operation.health import Readiness, serve
from stream_processor.operation.plan import check_together
from stream_processor.operation.topics import Topics
from stream_processor.settings import load

log = structlog.get_logger()

REPLAY = "replay-dead-letters"


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the program and returns its exit status: 0 stopped, 1 failed while running, 2 wrong input."""
    chosen = _parser().parse_args(arguments)
    if chosen.command == "schema":
        sys.stdout.write(pipeline_schema.text())
        return 0
    logs.configure()
    try:
        contract, files = Contract(statecast.descriptor_set()), list(dict.fromkeys(chosen.files))
        if chosen.command == "check":
            return _check(files, contract)
        pipelines = [pipeline_check.read(file, contract) for file in files]
        check_together(pipelines)
        if chosen.command == REPLAY:
            _replay(pipelines, chosen.reason, chosen.dry_run)
        else:
            COMMANDS[chosen.command](pipelines, contract)
    except StreamProcessorError as error:
        sys.stderr.write(f"stream-processor: {error}\n")
        return error.exit_status
    return 0


def _run(pipelines: Sequence[Pipeline], contract: Contract) -> None:
    # Spark takes seconds to import; `check` must not wait for it.
    from stream_processor.operation.run import Runner

    settings = load()
    stopping = Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopping.set())
    status = logs.status_line()
    logs.configure(status)
    metrics = Metrics(CollectorRegistry())
    readiness = Readiness(metrics)
    with serve(settings.metrics_host, settings.metrics_port, metrics, readiness) as port:
        log.info("serving metrics and health", host=settings.metrics_host, port=port)
        Runner(settings, contract, metrics, readiness, stopping, status.show if status else None).run(pipelines)


def _check(files: Sequence[Path], contract: Contract) -> int:
    sound: list[Pipeline] = []
    for file in files:
        try:
            read = pipeline_check.read(file, contract)
            check_together([*sound, read])
        except PipelineFileError as error:
            sys.stderr.write(f"stream-processor: {error}\n")
        else:
            sound.append(read)
            log.info("fine", file=str(file), pipeline=read.name)
    return 0 if len(sound) == len(files) else PipelineFileError.exit_status


def _explain(pipelines: Sequence[Pipeline], contract: Contract) -> None:
    from stream_processor.operation.explain import physical_plan
    from stream_processor.operation.session import command_session
    from stream_processor.operation.stop import stop

    settings = load()
    for each in pipelines:
        sys.stdout.write("\n".join(explanation.lines(each)) + "\n\n")
    sys.stdout.flush()
    spark = command_session(settings)
    try:
        for each in pipelines:
            plan = physical_plan(each, spark, contract, settings.kafka_bootstrap)
            sys.stdout.write(f"{each.name}, as Spark runs it\n{plan}\n")
    finally:
        stop(spark, [])


def _accept(pipelines: Sequence[Pipeline], contract: Contract) -> None:  # noqa: ARG001  a command's signature
    from stream_processor.operation.checkpoints import open_checkpoints
    from stream_processor.operation.run import dead_letter_limits
    from stream_processor.operation.session import command_session

    settings = load()
    notes = open_checkpoints(settings.checkpoints, partial(command_session, settings))
    try:
        for limit in dead_letter_limits(pipelines, Topics(settings.kafka_bootstrap), notes):
            log.info("accepted", topic=limit.topic, end=limit.accept())
    except KafkaException as error:
        raise ConfigurationError(f"no answer from Kafka at {settings.kafka_bootstrap}: {error}") from error


def _replay(pipelines: Sequence[Pipeline], reason: str, dry_run: bool) -> None:
    from stream_processor.letters.replay_command import replay_all

    settings = load()
    try:
        replay_all(pipelines, settings, reason, dry_run)
    except KafkaException as error:
        raise BrokerLostError(f"Kafka at {settings.kafka_bootstrap} did not take part: {error}") from error


COMMANDS = {"run": _run, "explain": _explain, "accept-dead-letters": _accept}


def _parser() -> ArgumentParser:
    parser = ArgumentParser(prog="stream-processor", description="Keeps grouped state in keyed topics.")
    commands = parser.add_subparsers(dest="command", required=True)
    helps = {
        "run": "run the pipelines until SIGTERM",
        "check": "check pipeline files against the contract, without Spark and Kafka",
        "explain": "tell what the pipelines do, and how Spark runs it; without Kafka",
        "accept-dead-letters": "count the dead letters of the pipelines' sources from now on",
        REPLAY: "put the dead letters of the pipelines' sources back, when what was wrong is mended",
    }
    for command, text in helps.items():
        commands.add_parser(command, help=text).add_argument("files", nargs="+", type=Path, metavar="FILE")
    replay = commands.choices[REPLAY]
    replay.add_argument("--reason", default="", metavar="TEXT", help="only those with this text in their reason")
    replay.add_argument("--dry-run", action="store_true", help="say what would be put back, and do nothing")
    commands.add_parser("schema", help="print the JSON Schema of a pipeline's file")
    return parser


if __name__ == "__main__":
    sys.exit(main())
