"""The command `statecast doctor`: finds problems in a team's Kafka, connector and database."""

import argparse
import os
import sys
from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from pydantic_settings import SettingsConfigDict

from statecast_onboarding.doctor.binlog_checks import SCHEMES, check_binlog_database
from statecast_onboarding.doctor.connect_state import running_connector
from statecast_onboarding.doctor.connector_checks import (
    check_config,
    check_sources,
    included_tables,
    table_of,
)
from statecast_onboarding.doctor.database_checks import check_database
from statecast_onboarding.doctor.finding import Finding
from statecast_onboarding.doctor.kafka_checks import KafkaChecks
from statecast_onboarding.doctor.team_files import TeamFiles, read_files
from statecast_onboarding.errors import OnboardingError
from statecast_onboarding.table_names import split_name
from statecast_service.errors import ServiceError
from statecast_service.kafka import KafkaSettings
from statecast_service.settings import load_settings

_EPILOG = """\
each line begins with FAIL (will not work), WARN (works until something happens) or ok.

exit status:
  0  nothing that was looked at will fail
  1  something will not work
  2  an argument or a file is wrong
"""


class Settings(KafkaSettings):
    """How the command reaches Kafka, from variables that begin with STATECAST_DOCTOR_."""

    model_config = SettingsConfigDict(env_prefix="STATECAST_DOCTOR_")


def main(arguments: Sequence[str]) -> int:
    """Runs the command; returns its exit status."""
    options = _parser().parse_args(arguments)
    failed = False
    try:
        for finding in findings(options):
            sys.stdout.write(f"{finding}\n")
            sys.stdout.flush()
            failed = failed or finding.level == "FAIL"
    except ServiceError as error:
        sys.stderr.write(f"statecast: {error}\n")
        return error.exit_status
    return 1 if failed else 0


def findings(options: Namespace) -> Iterator[Finding]:
    """Looks at everything that the options name, Kafka first. Raises ServiceError for a wrong argument or file."""
    if not (options.kafka or options.kafka_properties or options.connect or options.database or options.files):
        raise OnboardingError("name something to look at: --kafka, --connect, --database, or --files with a connector")
    if options.connect and not options.connector:
        raise OnboardingError("--connector is missing: the name of the connector at Connect")
    files = _files(options)
    compacted: set[str] = set()
    if options.kafka or options.kafka_properties:
        overrides = {"kafka_bootstrap": options.kafka, "kafka_properties": options.kafka_properties}
        checks = KafkaChecks(load_settings(Settings, **overrides), files, tuple(dict.fromkeys(options.service)))
        yield from checks.findings()
        compacted = checks.compacted
    config, runs = files.connector, False
    if options.connect:
        running = running_connector(options.connect, options.connector)
        yield from running.findings
        config, runs = running.config or config, running.runs
    asked = (".".join(split_name(each)) for each in options.table)
    tables = list(dict.fromkeys([*asked, *_tables(files, config)]))
    if config:
        yield from check_config(config, tables, compacted)
        yield from check_sources(config, files.sources)
    if options.database:
        if options.database.partition("://")[0] in SCHEMES:
            yield from check_binlog_database(options.database, tables or included_tables(config), config)
        else:
            yield from check_database(options.database, tables, config, runs)


def _files(options: Namespace) -> TeamFiles:
    if not options.files:
        return TeamFiles()
    files = read_files(options.files)
    if not (options.kafka or options.kafka_properties or options.connect or options.database or files.connector):
        raise OnboardingError(f"{options.files} has no connector.json: name --kafka, --connect or --database")
    return files


def _tables(files: TeamFiles, config: Mapping[str, str]) -> list[str]:
    """Returns the tables behind the topics that the pipelines read under the connector's prefix."""
    prefix = config.get("topic.prefix")
    return [table_of(topic, config) for topic in sorted(files.sources) if prefix and topic.startswith(f"{prefix}.")]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="statecast doctor",
        description="Says what of a team's Kafka, connector and database will not work; changes nothing.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--files", type=Path, metavar="DIR", help="what `statecast import` wrote: pipelines and connector")
    add("--kafka", metavar="HOST:PORT", help="brokers, with commas")
    add("--kafka-properties", type=Path, metavar="FILE", help="properties of the client, such as security.protocol")
    add(
        "--service",
        action="append",
        default=[],
        metavar="NAME",
        help="check that this user may do what that service does to topics and groups; repeat it",
    )
    add("--connect", metavar="URL", help="the REST address of Kafka Connect")
    add("--connector", metavar="NAME", help="the connector there; without --connect the file of --files is looked at")
    url = os.environ.get("STATECAST_DATABASE")
    add(
        "--database",
        default=url,
        metavar="URL",
        help="postgres://… or mysql://…, as the connector [$STATECAST_DATABASE]",
    )
    add(
        "--table",
        action="append",
        default=[],
        metavar="SCHEMA.TABLE",
        help="a table; repeat it [those of the pipelines]",
    )
    return parser
