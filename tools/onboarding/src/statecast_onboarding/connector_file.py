"""A connector's file: its settings alone, or within `{"name": …, "config": {…}}`, as Connect's REST API has it."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, unquote, urlsplit

from statecast_onboarding.errors import OnboardingError
from statecast_onboarding.table_names import split_name, topic_of

CONNECTOR = "connector.json"
JSON_CONVERTER = "org.apache.kafka.connect.json.JsonConverter"
TABLES = "table.include.list"
PASSWORD_REFERENCE = "${file:/etc/connect/database.properties:password}"  # noqa: S105  where the password is
"""Kafka Connect replaces it by a value from its FileConfigProvider; a password in the file would be in every backup."""
VIA_ROOT = "publish.via.partition.root"
_COMMA = re.compile(r"(?<!\\),")


@dataclass(frozen=True)
class ConnectorFile:
    """The content of a connector's file. Its settings stay as they were written, numbers and null included."""

    config: Mapping[str, Any]
    beside: Mapping[str, Any] | None = None
    """Everything around `config`, the connector's name above all; None where the file is the settings alone."""

    @property
    def settings(self) -> dict[str, str]:
        return settings_of(self.config)

    def text_with(self, config: Mapping[str, Any]) -> str:
        """Returns the file with other settings, in the form that it has."""
        return json.dumps(config if self.beside is None else {**self.beside, "config": config}, indent=2) + "\n"


def read_connector(path: Path) -> ConnectorFile | None:
    """Returns the file; None when it is missing. Raises OnboardingError that names the file and the key."""
    if not path.exists():
        return None
    content = read_json(path)
    if not isinstance(content, dict):
        raise OnboardingError(f"{path}: it must be a JSON object, the connector's settings")
    nested = "config" in content
    config = content["config"] if nested else content
    if not isinstance(config, dict):
        raise OnboardingError(f"{path}: config must be a JSON object, the connector's settings")
    try:
        settings_of(config)
    except ValueError as error:
        raise OnboardingError(f"{path}: {'config.' if nested else ''}{error}") from error
    return ConnectorFile(config, content if nested else None)


def settings_of(config: Mapping[str, Any]) -> dict[str, str]:
    """Returns the settings as Connect reads them: as texts, and without null.

    Raises ValueError for an object or an array.
    """
    for name, value in config.items():
        if isinstance(value, (dict, list)):
            raise ValueError(f"{name} must be a text, a number, true or false")  # noqa: TRY004  the file is wrong
    return {name: _text(value) for name, value in config.items() if value is not None}


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def include_entries(settings: Mapping[str, str]) -> list[str]:
    """Returns the entries of the list of tables, each a regular expression."""
    return [entry for each in _COMMA.split(settings.get(TABLES, "")) if (entry := each.strip())]


def include_entry(table: str) -> str:
    """Returns the entry of a table, as schema.table. A dot stays: it fits itself, and people read it."""
    return re.sub(r"[^\w\s.-]", r"\\\g<0>", table)


def topic_prefix(url: str, wanted: str, former: Mapping[str, str], kafka_prefix: str) -> str:
    """Returns the prefix of the table's topic: that of `former` settings, else the wanted one; empty for the default.
    Behind a `kafka_prefix` it is the database's name.

    Raises OnboardingError when the former one reads another database, or has another prefix than the wanted one. A
    wanted prefix that is the same says that it is the same server, which Connect may reach by another name.
    """
    prefix = former.get("topic.prefix", "")
    if not prefix:
        return wanted or (f"{kafka_prefix}{_address(url)[1]}" if kafka_prefix else "")
    hostname, database = _address(url)
    compared = {"topic.prefix": wanted or prefix, "database.dbname": database}
    if not wanted:
        compared["database.hostname"] = hostname
    for name, value in compared.items():
        if former.get(name, value) != value:
            same = f", or confirm with --topic-prefix {prefix} that it is one server" if "hostname" in name else ""
            raise OnboardingError(
                f"connector.json has {name} {former[name]}, not {value}: take another --out for another connector{same}"
            )
    return prefix


def _address(url: str) -> tuple[str, str]:
    """Returns the host and the database that the URL names."""
    parts = _parts(url)
    return parts.hostname or "127.0.0.1", unquote(parts.path.removeprefix("/")) or "postgres"


def _parts(url: str) -> SplitResult:
    """Returns the parts of a URL with a numeric port. Raises OnboardingError for other forms that psycopg takes."""
    if not url.startswith(("postgres://", "postgresql://")):
        raise OnboardingError("the database is no URL: write postgres://user:password@host/name")
    try:
        parts = urlsplit(url)
        single = "," not in parts.netloc.rpartition("@")[2] and parts.port != 0
    except ValueError:  # the port is no number
        single = False
    if not single:
        raise OnboardingError("the URL of the database must name one host and one port")
    return parts


def connector(url: str, name: str, topic: str, former: ConnectorFile | None, partitioned: bool = False) -> str:
    """Returns the connector's file. A new one is the configuration as `PUT /connectors/NAME/config` takes it.

    A `former` one keeps its form and all edits, but for settings that lose changes, and gets the table beside those
    that it has. Without a list it reads all tables, and goes on doing so.
    """
    schema, table = split_name(name)
    file = former or ConnectorFile({})
    config = dict(file.config or _new_connector(url, topic.removesuffix(topic_of("", schema, table))))
    tables = include_entries(settings_of(config))
    if tables or not file.config:
        config[TABLES] = ",".join(dict.fromkeys([*tables, include_entry(f"{schema}.{table}")]))
    return file.text_with(config | corrections(settings_of(config), partitioned))


def corrections(settings: Mapping[str, str], partitioned: bool = False) -> dict[str, str]:
    """Returns settings with which a connector can take another table and neither stops nor writes other values."""
    corrected = {VIA_ROOT: "true"} if partitioned else {}
    for converter in ("key.converter", "value.converter"):
        if settings.get(converter) == JSON_CONVERTER:
            corrected[f"{converter}.replace.null.with.default"] = "false"
    # Debezium cannot alter a publication of some operations: it would retry for ever, while Connect says that it runs.
    if settings.get("publication.autocreate.mode") == "filtered" and settings.get("skipped.operations", "t") == "t":
        corrected["skipped.operations"] = "none"
    return corrected


def _new_connector(url: str, prefix: str) -> dict[str, str]:
    parts, (hostname, database) = _parts(url), _address(url)
    identifier = "".join(sign if sign.isalnum() else "_" for sign in prefix.lower())
    return {
        "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
        "plugin.name": "pgoutput",
        "database.hostname": hostname,
        "database.port": str(parts.port or 5432),
        "database.user": unquote(parts.username or "postgres"),
        "database.password": PASSWORD_REFERENCE,
        "database.dbname": database,
        "topic.prefix": prefix,
        "slot.name": f"statecast_{identifier}"[:63],
        "publication.name": f"statecast_{identifier}"[:63],
        "publication.autocreate.mode": "filtered",
        "table.include.list": "",
        "decimal.handling.mode": "string",
        "interval.handling.mode": "string",
        VIA_ROOT: "true",
        "skipped.operations": "none",
        "tombstones.on.delete": "true",
        "poll.interval.ms": "50",
        "key.converter": JSON_CONVERTER,
        "key.converter.schemas.enable": "false",
        "value.converter": JSON_CONVERTER,
        "value.converter.schemas.enable": "true",
    }


def read_json(path: Path) -> Any:
    """Returns the content of a file. Raises OnboardingError when it cannot be read, or is not JSON."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise OnboardingError(f"{path} cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise OnboardingError(f"{path} is not JSON: {error}") from error
