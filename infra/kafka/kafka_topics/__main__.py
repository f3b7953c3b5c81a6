"""The command `kafka-topics`: creates missing topics, checks existing ones, changes nothing silently."""

import argparse
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from pydantic_settings import SettingsConfigDict

from kafka_topics import TopicsDifferError
from kafka_topics.acls import acls
from kafka_topics.topics_file import read_topics
from statecast_service.build import add_version
from statecast_service.errors import ServiceError
from statecast_service.kafka import KafkaSettings
from statecast_service.kafka_cluster import Cluster
from statecast_service.settings import load_settings
from statecast_service.topics import differences

EXIT_STATUSES = """exit status:
  0  every topic of the file exists and is as the file says
  1  a topic differs or was refused, or no broker answered in time
  2  the file or an argument is wrong
"""


class Settings(KafkaSettings):
    """The command's connection to Kafka, from variables that begin with KAFKA_TOPICS_."""

    model_config = SettingsConfigDict(env_prefix="KAFKA_TOPICS_")


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    try:
        _ensure(options)
    except ServiceError as error:
        lines = error.differences if isinstance(error, TopicsDifferError) else [str(error)]
        sys.stderr.write("".join(f"kafka-topics: {line}\n" for line in lines))
        return error.exit_status
    except KeyboardInterrupt:
        return 130
    return 0


def _ensure(options: argparse.Namespace) -> None:
    """Creates the missing topics, then checks all. Raises TopicsError; for differences, with one line each."""
    declared = read_topics(options.file)
    overrides = {"kafka_bootstrap": options.bootstrap_server, "kafka_properties": options.command_config}
    settings = load_settings(Settings, **overrides)
    if options.acls:
        _say("\n".join(acl.arguments for acl in acls(declared, settings.kafka_group_prefix)))
        return
    cluster = Cluster(settings, options.timeout)
    cluster.wait(_say)
    names = [topic.name for topic in declared]
    existing = cluster.topics(names)
    missing = [topic for topic in declared if topic.name not in existing]
    cluster.create(missing, options.replication_factor)
    for topic in missing:
        _say(f"created {topic.name} with {topic.partitions} partitions")
    lines = differences(declared, cluster.wait_for(names))
    if lines:
        raise TopicsDifferError(lines)
    _say(f"{len(declared)} topics are as the file says, {len(missing)} of them new")


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="kafka-topics",
        description="Creates the topics that FILE declares and checks existing ones against it; it alters none.",
        epilog=EXIT_STATUSES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_version(parser, "statecast-infra")
    parser.add_argument("file", metavar="FILE", type=Path, help="the YAML file, for example infra/kafka/topics.yaml")
    option = parser.add_argument
    option("--bootstrap-server", metavar="HOST:PORT", help="default: 127.0.0.1:9092")
    option("--command-config", metavar="FILE", type=Path, help="properties of the client, such as security.protocol")
    option("--acls", action="store_true", help="only print what kafka-acls --add takes to let the services in")
    option("--replication-factor", metavar="N", type=_positive, help="of new topics; default: the broker's own")
    option("--timeout", metavar="S", type=_seconds, default=30.0, help="how long to wait for a broker; default: 30 s")
    return parser


def _positive(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 32_767:
        raise argparse.ArgumentTypeError(f"{text!r} must be a whole number of 1 or more")
    return int(text)


def _seconds(text: str) -> float:
    with suppress(ValueError):
        if 0 <= float(text) <= 86_400:
            return float(text)
    raise argparse.ArgumentTypeError(f"{text!r} must be a number of seconds from 0 to 86400")


if __name__ == "__main__":
    sys.exit(main())
