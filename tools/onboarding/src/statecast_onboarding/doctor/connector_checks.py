"""Checks the configuration of a Debezium connector: its class, tables, operations and settings."""

import re
from collections.abc import Collection, Iterator, Mapping

from statecast_onboarding.connector_file import TABLES, include_entries
from statecast_onboarding.doctor.converter_checks import check_converters
from statecast_onboarding.doctor.finding import Finding, fail, warn
from statecast_onboarding.doctor.setting_checks import check_settings
from statecast_onboarding.doctor.transform_checks import check_transforms, merged_topics
from statecast_onboarding.table_names import split_name, topic_of

CONNECTOR_CLASS = "io.debezium.connector.postgresql.PostgresConnector"
BINLOG_CLASSES = ("io.debezium.connector.mysql.MySqlConnector", "io.debezium.connector.mariadb.MariaDbConnector")
_FAILURES = ("event.deserialization.failure.handling.mode", "inconsistent.schema.handling.mode")
_SKIPPED = {"c": "new rows never arrive", "u": "changes never arrive", "d": "deleted rows stay for ever"}


def included_tables(config: Mapping[str, str]) -> list[str]:
    """Returns the tables that a configuration names, as schema.table; regular expressions stay as they are."""
    return [re.sub(r"\\(.)", r"\1", entry) for entry in include_entries(config)]


def table_of(topic: str, config: Mapping[str, str]) -> str:
    """Returns the table behind a topic of Debezium, as schema.table: the topic's name ends with both."""
    end = ".".join(topic.rsplit(".", 2)[-2:])
    return next((table for table in included_tables(config) if topic_of(*split_name(table)) == end), end)


def check_sources(config: Mapping[str, str], topics: Collection[str]) -> Iterator[Finding]:
    """Finds source topics that nobody writes, because the connector sends their table under another prefix."""
    prefix = config.get("topic.prefix", "")
    if not prefix or "Router" in " ".join(config.values()):
        return
    tables = included_tables(config)
    for topic in sorted(topics):
        if (table := table_of(topic, config)) in tables:
            written = topic_of(prefix, *split_name(table))
            if topic != written:
                yield fail(
                    f"source {topic}", f"the connector writes {written}: set source.topic of the pipelines to it"
                )


def check_config(config: Mapping[str, str], tables: Collection[str], compacted: Collection[str]) -> Iterator[Finding]:
    """Finds problems of a configuration.

    `tables` are those that must be sent, as schema.table; `compacted` the source topics that Kafka compacts.
    """
    kind = config.get("connector.class", "")
    if kind not in (CONNECTOR_CLASS, *BINLOG_CLASSES):
        names = ", ".join((CONNECTOR_CLASS, *BINLOG_CLASSES))
        yield fail("connector.class", f"is {kind or 'missing'}: changes are read from one of {names}")
    yield from _tables(config, tables)
    yield from _operations(config)
    yield from check_converters(config)
    yield from check_settings(config)
    yield from check_transforms(config)
    if config.get("tombstones.on.delete", "true") == "false" and compacted:
        topics = ", ".join(sorted(compacted))
        yield warn("tombstones.on.delete", f"is false, and {topics} is compacted: deleted rows stay; leave it true")
    for name in _FAILURES if kind in BINLOG_CLASSES else ():
        if config.get(name, "fail") != "fail":
            yield fail(name, f"is {config[name]}: a change that the connector cannot read is lost; set it to fail")
    if kind not in BINLOG_CLASSES and config.get("plugin.name", "decoderbufs") != "pgoutput":
        yield warn("plugin.name", "is not pgoutput, the only one that every PostgreSQL has: set it to pgoutput")


def _tables(config: Mapping[str, str], tables: Collection[str]) -> Iterator[Finding]:
    included = included_tables(config)
    # An entry is a regular expression; only plain names can be compared without the connector's own rules.
    plain = all("*" not in each and "(" not in each for each in included)
    if included and plain:
        for table in sorted(set(tables) - set(included)):
            yield fail(TABLES, f"has no {table}: add it, or its changes never arrive")
    prefix = config.get("topic.prefix", "")
    topics = [topic_of(prefix, *split_name(table)) for table in (included if plain else sorted(tables))]
    for topic, several in merged_topics(config, topics).items():
        text = f"sends {', '.join(several)} to one topic, {topic}: rows of equal keys take each other's place"
        yield fail("transforms", f"{text}, and TRUNCATE of one table empties all; keep a topic for each table")


def _operations(config: Mapping[str, str]) -> Iterator[Finding]:
    skipped = {each.strip() for each in config.get("skipped.operations", "t").split(",")}
    lost = [_SKIPPED[operation] for operation in sorted(skipped & _SKIPPED.keys())]
    if lost:
        yield fail("skipped.operations", f"is {config['skipped.operations']}: {', '.join(lost)}; set it to none")
    elif "t" in skipped and config.get("publication.autocreate.mode") == "filtered":
        text = "drops TRUNCATE, whose rows stay; and the connector cannot alter its publication, so with another table"
        yield warn("skipped.operations", f"{text} no change of any arrives while Connect says RUNNING: set it to none")
    elif "t" in skipped:
        yield warn("skipped.operations", "drops TRUNCATE: its rows stay; set it to none")
