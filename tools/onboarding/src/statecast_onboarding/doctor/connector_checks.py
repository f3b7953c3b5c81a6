"""What of a Debezium connector will not work: its state, and its configuration."""

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any
from urllib.parse import quote

import httpx

from statecast_onboarding.connector_file import include_entries, settings_of
from statecast_onboarding.doctor.finding import Finding, fail, ok, warn
from statecast_onboarding.postgres_table import split_name, topic_of
from statecast_service.settings import suggest

CONNECTOR_CLASS = "io.debezium.connector.postgresql.PostgresConnector"
BINLOG_CLASSES = ("io.debezium.connector.mysql.MySqlConnector", "io.debezium.connector.mariadb.MariaDbConnector")
JSON_CONVERTER = "org.apache.kafka.connect.json.JsonConverter"
TIMEOUT_S = 10.0
_FAILURES = ("event.deserialization.failure.handling.mode", "inconsistent.schema.handling.mode")
_SKIPPED = {"c": "new rows never arrive", "u": "changes never arrive", "d": "deleted rows stay for ever"}


def running_config(url: str, name: str) -> tuple[list[Finding], Mapping[str, str]]:
    """What is wrong with the state of a connector at Kafka Connect, and its configuration, if it is there."""
    try:
        with httpx.Client(base_url=url, timeout=TIMEOUT_S, trust_env=False) as client:
            path = f"/connectors/{quote(name, safe='')}"
            answer = client.get(path)
            if answer.status_code == httpx.codes.NOT_FOUND:
                names = [str(each) for each in client.get("/connectors").raise_for_status().json()]
                return [fail(f"connector {name}", f"Connect at {url} does not have it; {suggest(name, names)}")], {}
            config = settings_of(answer.raise_for_status().json()["config"])
            return list(_state(name, client.get(f"{path}/status").raise_for_status().json())), config
    except (httpx.HTTPError, httpx.InvalidURL, ValueError, AttributeError, KeyError, TypeError) as error:
        return [fail("connect", f"Kafka Connect at {url} does not answer as it should: {error}")], {}


def _state(name: str, status: Mapping[str, Any]) -> Iterator[Finding]:
    tasks = status.get("tasks") or []
    stopped = [part for part in (status.get("connector") or {}, *tasks) if part.get("state") != "RUNNING"]
    for part in stopped:
        reason = str(part.get("trace") or "").partition("\n")[0] or "look into the log of Connect"
        yield fail(f"connector {name}", f"is {part.get('state')}: {reason}")
    if not tasks:
        yield fail(f"connector {name}", "has no task: look into the log of Connect")
    elif not stopped:
        yield ok(f"connector {name}", "runs")


def included_tables(config: Mapping[str, str]) -> list[str]:
    """The tables that a configuration names, as schema.table; regular expressions stay as they are."""
    return [re.sub(r"\\(.)", r"\1", entry) for entry in include_entries(config)]


def table_of(topic: str, config: Mapping[str, str]) -> str:
    """The table whose changes a topic of Debezium holds, as schema.table: its name ends with both."""
    end = ".".join(topic.rsplit(".", 2)[-2:])
    return next((table for table in included_tables(config) if topic_of(*split_name(table)) == end), end)


def check_sources(config: Mapping[str, str], topics: Collection[str]) -> Iterator[Finding]:
    """Which source topics of pipelines nobody writes, because the connector sends their table under another prefix."""
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
    """What of a configuration will not work.

    `tables` are those that must be sent, as schema.table; `compacted` the source topics that Kafka compacts.
    """
    kind = config.get("connector.class", "")
    if kind not in (CONNECTOR_CLASS, *BINLOG_CLASSES):
        names = ", ".join((CONNECTOR_CLASS, *BINLOG_CLASSES))
        yield fail("connector.class", f"is {kind or 'missing'}: changes are read from one of {names}")
    yield from _tables(config, tables)
    yield from _operations(config)
    yield from _values(config)
    if config.get("tombstones.on.delete", "true") == "false" and compacted:
        topics = ", ".join(sorted(compacted))
        yield warn("tombstones.on.delete", f"is false, and {topics} is compacted: deleted rows stay; leave it true")
    for name in _FAILURES if kind in BINLOG_CLASSES else ():
        if config.get(name, "fail") != "fail":
            yield fail(name, f"is {config[name]}: a change that the connector cannot read is lost; set it to fail")
    if kind not in BINLOG_CLASSES and config.get("plugin.name", "decoderbufs") != "pgoutput":
        yield warn("plugin.name", "is not pgoutput, the only one that every PostgreSQL has: set it to pgoutput")
    if config.get("snapshot.mode", "initial") in ("never", "no_data"):
        yield warn(
            "snapshot.mode", "sends no rows that are there already: set it to initial, or take a snapshot by hand"
        )


def _tables(config: Mapping[str, str], tables: Collection[str]) -> Iterator[Finding]:
    included = included_tables(config)
    # An entry is a regular expression; only plain names can be compared without the connector's own rules.
    if included and all("*" not in each and "(" not in each for each in included):
        for table in sorted(set(tables) - set(included)):
            yield fail("table.include.list", f"has no {table}: add it, or its changes never arrive")
    for name in ("column.exclude.list", "column.include.list"):
        if config.get(name):
            yield warn(name, f"is {config[name]}: columns that are not sent are empty in every row")


def _operations(config: Mapping[str, str]) -> Iterator[Finding]:
    skipped = {each.strip() for each in config.get("skipped.operations", "t").split(",")}
    lost = [_SKIPPED[operation] for operation in sorted(skipped & _SKIPPED.keys())]
    if lost:
        yield fail("skipped.operations", f"is {config['skipped.operations']}: {', '.join(lost)}; set it to t")
    elif "t" in skipped:
        yield warn("skipped.operations", "drops TRUNCATE: its rows stay; delete rows instead of truncating the table")


def _values(config: Mapping[str, str]) -> Iterator[Finding]:
    converter = config.get("value.converter")
    if converter is None:
        yield warn("value.converter", f"is the worker's, which is not seen here: set it to {JSON_CONVERTER}")
    elif converter != JSON_CONVERTER:
        yield fail("value.converter", f"is {converter}: changes are read as JSON; set it to {JSON_CONVERTER}")
    schemas = config.get("value.converter.schemas.enable", "true") == "true"
    decimals, times = config.get("decimal.handling.mode", "precise"), config.get("time.precision.mode", "adaptive")
    if decimals == "precise" and not schemas:
        yield fail("decimal.handling.mode", "is precise, and without schemas nobody knows the scale: set it to string")
    elif decimals == "double":
        yield warn("decimal.handling.mode", "is double: amounts are rounded; set it to string")
    else:
        yield ok("decimal.handling.mode", f"is {decimals}")
    if (binary := config.get("binary.handling.mode", "bytes")) in ("hex", "base64-url-safe"):
        yield fail("binary.handling.mode", f"is {binary}: bytes are read as base64; set it to bytes")
    if not schemas and times != "isostring":
        text = "is false: dates and times are bare numbers whose unit is guessed; set it to true"
        yield warn("value.converter.schemas.enable", f"{text}, or time.precision.mode to isostring")
    if "ExtractNewRecordState" in " ".join(config.values()):
        text = "take the envelope away, and with it the row before, the operation and the position"
        yield warn("transforms", f"ExtractNewRecordState: they {text}; remove it")
