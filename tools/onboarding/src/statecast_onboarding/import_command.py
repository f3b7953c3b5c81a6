"""The command `statecast import`: writes the files that bring a table into Statecast."""

import argparse
import os
import re
import shutil
import sys
from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from statecast.descriptors import DescriptorsError, MessageTypes
from statecast_client.argument_types import whole_number
from statecast_domains.directories import DOMAIN_FILE
from statecast_domains.errors import DomainFileError
from statecast_onboarding.connector_file import CONNECTOR, ConnectorFile, connector, read_connector, topic_prefix
from statecast_onboarding.document_table import read_avro, read_sample
from statecast_onboarding.domain_directory import PIPELINES, check_domain, domain_text, former_prefix
from statecast_onboarding.errors import FileExistsAlready, OnboardingError
from statecast_onboarding.message_file import proto_file
from statecast_onboarding.next_steps import next_steps
from statecast_onboarding.pipeline_files import MAX_NAME, SHAPES, Choice, group_of, pipelines
from statecast_onboarding.postgres_table import read_table
from statecast_onboarding.table import INTEGERS, Table
from statecast_service.errors import ServiceError
from statecast_service.topic_names import is_topic_name

MESSAGES = "messages"
MAX_PARTITIONS = 10_000
_NAME = re.compile(r"[a-z0-9][a-z0-9-]*")


def main(arguments: Sequence[str]) -> int:
    """Runs the command; returns 0, or 2 when something was wrong with the input."""
    options = _options(arguments)
    try:
        before = read_connector(options.out / CONNECTOR) if options.database else None
        written = run(options)
    except ServiceError as error:
        sys.stderr.write(f"statecast: {error}\n")
        return error.exit_status
    sys.stdout.writelines(f"wrote {path}\n" for path in written.files)
    sys.stdout.writelines(f"{line}\n" for line in next_steps(options.out, written.table, before))
    return 0


@dataclass(frozen=True)
class Written:
    """The table as it was imported, and its files."""

    table: Table
    files: Sequence[Path]


def run(options: Namespace) -> Written:
    """Writes the files. Raises OnboardingError; for wrong input, before anything is written."""
    try:
        table, files = _files(options)
        return Written(table, _write(files))
    except OSError as error:
        reason = error.strerror or error
        raise OnboardingError(f"{error.filename or options.out} cannot be read or written: {reason}") from error
    except UnicodeEncodeError as error:  # JSON can escape half of a character, and no file can hold it
        raise OnboardingError(f"{_source(options)}: a name has half of a character: {error}") from error
    except RecursionError as error:
        raise OnboardingError(f"{_source(options)}: it is nested too deeply") from error


def _source(options: Namespace) -> str:
    return str(options.sample or options.avro or options.table)


def _files(options: Namespace) -> tuple[Table, Mapping[Path, str]]:
    out: Path = options.out
    if options.name is not None and not _NAME.fullmatch(options.name):
        raise OnboardingError(f"--name {options.name!r} is no name: it has small letters, digits and - only")
    prefix = _kafka_prefix(options)
    former = read_connector(out / CONNECTOR) if options.database else None
    table = _as_wanted(_table(options, former, prefix), options)
    new = _new_files(table, options, prefix)
    for path in new:
        if path.exists():
            raise FileExistsAlready(
                f"{path} is there already, and may have been edited: remove it, or take another --out or --name"
            )
    new[out / PIPELINES / DOMAIN_FILE] = domain_text(out / PIPELINES, prefix, table.topic, options.partitions)
    _check(out / MESSAGES, new, MessageTypes.read)
    _check(out / PIPELINES, new, check_domain)
    if options.database:
        new[out / CONNECTOR] = connector(options.database, options.table, table.topic, former, table.partitioned)
    return table, new


def _as_wanted(table: Table, options: Namespace) -> Table:
    """Returns the table as it is wanted: its owner's column a text, and under another name."""
    if options.owner is not None:
        if options.sort == options.owner and table.column(options.owner).type in INTEGERS:
            raise OnboardingError(f"--sort {options.sort}: the owner's digits are a text, whose order is not theirs")
        table = table.with_owner(options.owner)
    return table if options.name is None else replace(table, name=options.name)


def _new_files(table: Table, options: Namespace, prefix: str) -> dict[Path, str]:
    """Returns the message and the pipelines of the table."""
    shapes = tuple(dict.fromkeys(options.shape or ["latest"]))
    choice = Choice(shapes, options.group, options.sort, prefix, options.owner, options.partitions)
    package = options.package or f"{_package(table)}.v1"
    group = group_of(table, choice)
    keyed = pipelines(table, package, choice)
    message = proto_file(table, package, group if "aggregate" in choice.shapes else None)
    directory = options.out / PIPELINES
    return {options.out / MESSAGES / f"{table.slug}.proto": message} | {
        directory / f"{each.name}.yaml": each.text for each in keyed
    }


def _kafka_prefix(options: Namespace) -> str:
    """Returns the prefix of all topics. Raises OnboardingError for another than that of the former tables."""
    directory = options.out / PIPELINES
    wanted, former = options.kafka_prefix, former_prefix(directory)
    if wanted and not is_topic_name(f"{wanted}{'x' * MAX_NAME}"):
        raise OnboardingError(f"--kafka-prefix {wanted!r} begins no topic: it has letters, digits, dots, _ and - only")
    if former is not None and wanted not in (None, former):
        text = f"{directory / DOMAIN_FILE}: topic_prefix: is {former!r}, not {wanted!r}"
        raise OnboardingError(f"{text}: take another --out, or leave out --kafka-prefix")
    return wanted or former or ""


def _table(options: Namespace, former: ConnectorFile | None, kafka_prefix: str) -> Table:
    sources = [options.database, options.sample, options.avro]
    if sum(source is not None for source in sources) != 1:
        raise OnboardingError("name one source: a database as postgres://…, --sample FILE or --avro FILE")
    if options.database:
        if not options.table:
            raise OnboardingError("--table is missing: name it as schema.table")
        settings = former.settings if former else {}
        prefix = topic_prefix(options.database, options.topic_prefix, settings, kafka_prefix)
        return read_table(options.database, options.table, prefix)
    if not options.topic:
        raise OnboardingError("--topic is missing: the topic that holds the changes")
    if not is_topic_name(options.topic):
        raise OnboardingError(f"--topic {options.topic!r} is no topic: it has letters, digits, dots, _ and - only")
    read = read_sample if options.sample else read_avro
    return read(options.sample or options.avro, options.topic, options.key)


def _package(table: Table) -> str:
    """Returns the first part of the topic's name, as a package."""
    first = table.topic.partition(".")[0]
    name = "".join(sign if sign.isascii() and sign.isalnum() else "_" for sign in first.lower()).strip("_")
    return name if name[:1].isalpha() and name not in ("statecast", "google") else f"team_{name}".rstrip("_")


def _check(directory: Path, files: Mapping[Path, str], read: Callable[[Path], object]) -> None:
    """Reads the directory as it would be. Raises OnboardingError with the objections that services would have."""
    with TemporaryDirectory() as temporary:
        copy = Path(temporary) / directory.name
        if directory.is_dir():
            shutil.copytree(directory, copy)
        copy.mkdir(exist_ok=True)
        for path in files:
            if path.parent == directory:
                (copy / path.name).write_text(files[path], encoding="utf-8")
        try:
            read(copy)
        except (DescriptorsError, DomainFileError) as error:
            reason = str(error).replace(str(copy), str(directory))
            raise OnboardingError(
                f"nothing is written, because the {directory.name} would be refused: {reason}"
            ) from error


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
        description="Writes message, pipelines and connector of a table, with comments, ready to edit.",
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
    add("--partitions", type=whole_number(MAX_PARTITIONS), default=4, metavar="N", help="of the topics [4]")
    add("--out", type=Path, default=Path("statecast"), metavar="DIR", help="where to write [statecast]")
    return parser
