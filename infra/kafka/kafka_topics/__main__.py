"""The command `kafka-topics`: creates missing topics, checks existing ones, changes nothing silently."""

import argparse
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from kafka_topics import TopicsError
from kafka_topics.cluster import Cluster
from kafka_topics.topics_file import differences, read_topics

EXIT_STATUSES = """exit status:
  0  every topic of the file exists and is as the file says
  1  a topic differs or was refused, or no broker answered in time
  2  the file or an argument is wrong
"""


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    try:
        _ensure(options)
    except TopicsError as error:
        sys.stderr.write("".join(f"kafka-topics: {line}\n" for line in str(error).splitlines()))
        return error.exit_status
    except KeyboardInterrupt:
        return 130
    return 0


def _ensure(options: argparse.Namespace) -> None:
    """Creates what is missing, then checks everything. Raises TopicsError with one line for each difference."""
    declared = read_topics(options.file)
    cluster = Cluster(options.bootstrap_server, options.timeout)
    cluster.wait(_say)
    names = [topic.name for topic in declared]
    existing = cluster.topics(names)
    missing = [topic for topic in declared if topic.name not in existing]
    cluster.create(missing, options.replication_factor)
    for topic in missing:
        _say(f"created {topic.name} with {topic.partitions} partitions")
    lines = differences(declared, cluster.wait_for(names))
    if lines:
        raise TopicsError("\n".join(lines))
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
    parser.add_argument("file", metavar="FILE", type=Path, help="the YAML file, for example infra/kafka/topics.yaml")
    option = parser.add_argument
    option("--bootstrap-server", metavar="HOST:PORT", default="127.0.0.1:9092", help="default: %(default)s")
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
