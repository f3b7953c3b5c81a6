"""The command `statecast import`: writes the files that bring a table into Statecast."""

import argparse
import os
import re
import shutil
import sys
from argparse import Namespace
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from statecast.descriptors import DescriptorsError, MessageTypes
from statecast_domains.directories import DOMAIN_FILE
from statecast_onboarding import service_files
from statecast_onboarding.connector_file import ConnectorFile, read_connector
from statecast_onboarding.document_table import read_avro, read_sample
from statecast_onboarding.entry_files import entry_of, with_entries
from statecast_onboarding.errors import FileExistsAlready, OnboardingError
from statecast_onboarding.message_file import proto_file
from statecast_onboarding.pipeline_files import MAX_NAME, SHAPES, Choice, group_of, pipelines
from statecast_onboarding.postgres_table import read_table
from statecast_onboarding.table import INTEGERS, Table
from statecast_service.errors import ServiceError
from statecast_service.topic_names import is_topic_name

TOPICS, QUERY_STORES, EDGE_STORES = "topics.yaml", "query-stores.yaml", "edge-stores.yaml"
_NEXT = """\
look at the files in {out}, edit them, then:
  export STATECAST_DESCRIPTORS={out}/messages      # for every service and client
{prefixed}  stream-processor check {out}/pipelines/*.yaml
  kafka-topics {out}/topics.yaml
  stream-processor run {out}/pipelines/*.yaml
  QUERY_SERVICE_STORES={out}/query-stores.yaml query-service run
  WS_EDGE_STORES={out}/edge-stores.yaml ws-edge run
"""
_CONNECTOR = """\
  curl -X PUT -H 'Content-Type: application/json' -d @{out}/connector.json CONNECT/connectors/NAME/config
"""
_NESTED_CONNECTOR = """\
  jq .config {out}/connector.json | curl -X PUT -H 'Content-Type: application/json' -d @- CONNECT/connectors/NAME/config
"""
_PREFIXED = """\
  export WS_EDGE_TOPIC_PREFIX={prefix}      # and the line group.prefix={prefix} in the Kafka properties of all
"""
_NAME = re.compile(r"[a-z0-9][a-z0-9-]*")


def main(arguments: Sequence[str]) -> int:
    """Runs the command; returns 0, or 2 when something was wrong with the input."""
    options = _options(arguments)
    try:
        written = run(options)
    except ServiceError as error:
        sys.stderr.write(f"statecast: {error}\n")
        return error.exit_status
    sys.stdout.writelines(f"wrote {path}\n" for path in written)
    prefix = _former_prefix(options.out)
    sys.stdout.write(_NEXT.format(out=options.out, prefixed=_PREFIXED.format(prefix=prefix) if prefix else ""))
    if options.database:
        former = read_connector(options.out / "connector.json")
        put = _NESTED_CONNECTOR if former and former.beside is not None else _CONNECTOR
        sys.stdout.write(put.format(out=options.out))
    return 0


def run(options: Namespace) -> list[Path]:
    """Writes the files and returns them. Raises OnboardingError; for wrong input, before anything is written."""
    try:
        return _write(_files(options))
    except OSError as error:
        reason = error.strerror or error
        raise OnboardingError(f"{error.filename or options.out} cannot be read or written: {reason}") from error
    except UnicodeEncodeError as error:  # JSON can escape half of a character, and no file can hold it
        raise OnboardingError(f"{_source(options)}: a name has half of a character: {error}") from error
    except RecursionError as error:
        raise OnboardingError(f"{_source(options)}: it is nested too deeply") from error


def _source(options: Namespace) -> str:
    return str(options.sample or options.avro or options.table)


def _files(options: Namespace) -> Mapping[Path, str]:
    out: Path = options.out
    if options.name is not None and not _NAME.fullmatch(options.name):
        raise OnboardingError(f"--name {options.name!r} is no name: it has small letters, digits and - only")
    prefix = _kafka_prefix(options)
    former = read_connector(out / "connector.json") if options.database else None
    table = _table(options, former, prefix)
    if options.owner is not None:
        if options.sort == options.owner and table.column(options.owner).type in INTEGERS:
            raise OnboardingError(f"--sort {options.sort}: the owner's digits are a text, whose order is not theirs")
        table = table.with_owner(options.owner)
    if options.name is not None:
        table = replace(table, name=options.name)
    choice = Choice(
        tuple(dict.fromkeys(options.shape or ["latest"])),
        options.group,
        options.sort,
        prefix,
        options.owner,
        options.partitions,
    )
    package = options.package or f"{_package(table)}.v1"
    group = group_of(table, choice)
    keyed = pipelines(table, package, choice)
    message = out / "messages" / f"{table.slug}.proto"
    new = {message: proto_file(table, package, group if "aggregate" in choice.shapes else None)}
    new |= {out / "pipelines" / f"{each.name}.yaml": each.text for each in keyed}
    for path in new:
        if path.exists():
            raise FileExistsAlready(
                f"{path} is there already, and may have been edited: remove it, or take another --out or --name"
            )
    _check_message(message, new[message])
    domain = out / "pipelines" / DOMAIN_FILE
    head, entries = service_files.domain_head(prefix), service_files.domain_entries(table, options.partitions)
    new[domain] = with_entries(domain, head, entries)
    topics = service_files.topic_entries(table, keyed, options.partitions, prefix)
    new[out / TOPICS] = with_entries(out / TOPICS, service_files.TOPICS_HEAD, topics)
    query = service_files.query_store_entries(keyed, options.owner, choice.group)
    new[out / QUERY_STORES] = with_entries(out / QUERY_STORES, service_files.query_stores_head(prefix), query)
    edge = service_files.edge_store_entries(keyed, options.owner, choice.group)
    new[out / EDGE_STORES] = with_entries(out / EDGE_STORES, service_files.EDGE_STORES_HEAD, edge)
    if options.database:
        text = service_files.connector(options.database, options.table, table.topic, former)
        new[out / "connector.json"] = text
    return new


def _kafka_prefix(options: Namespace) -> str:
    """What the names of all topics begin with. Raises OnboardingError for another than that of the former tables."""
    wanted, former = options.kafka_prefix, _former_prefix(options.out)
    if wanted and not is_topic_name(f"{wanted}{'x' * MAX_NAME}"):
        raise OnboardingError(f"--kafka-prefix {wanted!r} begins no topic: it has letters, digits, dots, _ and - only")
    if former is not None and wanted not in (None, former):
        text = f"{options.out / QUERY_STORES} has topics that begin with {former!r}, not {wanted!r}"
        raise OnboardingError(f"{text}: take another --out, or leave out --kafka-prefix")
    return wanted or former or ""


def _former_prefix(out: Path) -> str | None:
    """The prefix of the tables that are there already; None when there are none, or when it was edited away."""
    topic = str(entry_of(out / QUERY_STORES, service_files.CHANNELS).get("topic", ""))
    return topic.removesuffix(service_files.CHANNELS) if topic.endswith(service_files.CHANNELS) else None


def _table(options: Namespace, former: ConnectorFile | None, kafka_prefix: str) -> Table:
    sources = [options.database, options.sample, options.avro]
    if sum(source is not None for source in sources) != 1:
        raise OnboardingError("name one source: a database as postgres://…, --sample FILE or --avro FILE")
    if options.database:
        if not options.table:
            raise OnboardingError("--table is missing: name it as schema.table")
        settings = former.settings if former else {}
        prefix = service_files.topic_prefix(options.database, options.topic_prefix, settings, kafka_prefix)
        return read_table(options.database, options.table, prefix)
    if not options.topic:
        raise OnboardingError("--topic is missing: the topic that holds the changes")
    if not is_topic_name(options.topic):
        raise OnboardingError(f"--topic {options.topic!r} is no topic: it has letters, digits, dots, _ and - only")
    read = read_sample if options.sample else read_avro
    return read(options.sample or options.avro, options.topic, options.key)


def _package(table: Table) -> str:
    """The first part of the topic's name, as a package."""
    first = table.topic.partition(".")[0]
    name = "".join(sign if sign.isascii() and sign.isalnum() else "_" for sign in first.lower()).strip("_")
    return name if name[:1].isalpha() and name not in ("statecast", "google") else f"team_{name}".rstrip("_")


def _check_message(path: Path, text: str) -> None:
    """Compiles the file beside those that are there. Raises OnboardingError with what the services would say of it."""
    with TemporaryDirectory() as temporary:
        beside = Path(temporary) / path.parent.name
        if path.parent.is_dir():
            shutil.copytree(path.parent, beside)
        beside.mkdir(exist_ok=True)
        (beside / path.name).write_text(text, encoding="utf-8")
        try:
            MessageTypes.read(beside)
        except DescriptorsError as error:
            reason = str(error).replace(str(beside), str(path.parent))
            raise OnboardingError(f"nothing is written, because the messages would be refused: {reason}") from error


def _write(files: Mapping[Path, str]) -> list[Path]:
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return list(files)


def _options(arguments: Sequence[str]) -> Namespace:
    options = _parser().parse_args(arguments)
    if options.database is None and options.sample is None and options.avro is None:
        options.database = os.environ.get("STATECAST_DATABASE")
    return options


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="statecast import",
        description="Writes message, pipelines, topics, stores and connector of a table, with comments, ready to edit.",
    )
    add = parser.add_argument
    add("database", nargs="?", metavar="URL", help="postgres://user:password@host/name [$STATECAST_DATABASE]")
    add("--table", metavar="SCHEMA.TABLE", help="the table of the database")
    add("--topic-prefix", default="", metavar="NAME", help="the connector's [that of --out, or the database's name]")
    add("--kafka-prefix", metavar="PREFIX", help="what all topics begin with, where ACLs allow no others: acme. [none]")
    add("--sample", type=Path, metavar="FILE", help="instead: a row or a change in JSON, also with a schema of Connect")
    add("--avro", type=Path, metavar="FILE", help="instead: an Avro schema of the row, or of Debezium's envelope")
    add("--topic", metavar="NAME", help="with a sample or schema: the topic that holds the changes")
    add(
        "--key",
        action="append",
        default=[],
        metavar="COLUMN",
        help="with these: a column of the primary key; repeat it",
    )
    add("--shape", action="append", choices=SHAPES, help="what is kept; repeat it [latest]")
    add("--group", metavar="COLUMN", help="of members and aggregate: the column that groups")
    add("--sort", metavar="COLUMN", help="of members: what orders a group [a time of change, or the key]")
    add("--owner", metavar="COLUMN", help="the column with the id of the consumer who may see the row [staff only]")
    add(
        "--name",
        metavar="NAME",
        help="in files, messages, stores and keyed topics [the table's, or the topic's last part]",
    )
    add("--package", metavar="NAME", help="the messages' package [the topic's first part, and .v1]")
    add("--partitions", type=_partitions, default=4, metavar="N", help="of the topics [4]")
    add("--out", type=Path, default=Path("statecast"), metavar="DIR", help="where to write [statecast]")
    return parser


def _partitions(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 10_000:
        raise argparse.ArgumentTypeError(f"`{text}` is not a number from 1 to 10000")
    return int(text)
