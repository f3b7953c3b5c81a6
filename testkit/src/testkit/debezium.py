"""Kafka Connect with Debezium's connectors, from the jars that Maven fetched for the local stack."""

import json
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

import httpx
from typing_extensions import override

from testkit import mariadb, postgres
from testkit.mariadb import MariaDb
from testkit.ports import free_port
from testkit.postgres import Postgres
from testkit.server_process import ServerProcess

_LOCAL = Path(__file__).resolve().parents[3] / "infra" / "local"
LIBS = _LOCAL / "connect" / "target" / "libs"
MARIADB_LIBS = _LOCAL / "connect-mariadb" / "target" / "libs"
CONNECTOR = "debezium"
PROVIDERS = "org.apache.kafka.common.config.provider"

LOGGING = """
<Configuration status="WARN">
  <Appenders><Console name="out"><PatternLayout pattern="%d %p %c{1} %m%n"/></Console></Appenders>
  <Loggers><Root level="WARN"><AppenderRef ref="out"/></Root></Loggers>
</Configuration>
"""

HTTP_TIMEOUT_S = 10.0
POLL_INTERVAL_MS = 20
"""How long the connector may hold changes to send more of them at once; Debezium's default is 500."""


def postgres_connector(
    server: Postgres, tables: Sequence[str], topics: str = "$1", **settings: str
) -> Mapping[str, str]:
    """Returns the configuration of a connector for tables of the schema `public`.

    `topics` is the pattern of a table's topic, in which `$1` stands for the table's own name. `settings` are Debezium's
    on top, with underscores for dots. A table needs no REPLICA IDENTITY FULL; without it the connector gives no true
    rows before a change.
    """
    own = {
        "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
        "plugin.name": "pgoutput",
        "database.dbname": postgres.USER,
        "publication.autocreate.mode": "filtered",
        "publish.via.partition.root": "true",
        "skipped.operations": "none",  # else the publication takes no further table
    }
    return {**own, **_connector(server, postgres.USER, "public", tables, topics), **_dotted(settings)}


def mariadb_connector(
    server: MariaDb, bootstrap: str, tables: Sequence[str], topics: str = "$1", **settings: str
) -> Mapping[str, str]:
    """Returns the configuration of a connector for tables of the only database; else as `postgres_connector`.

    The history of the tables' definitions is kept in a topic of the broker.
    """
    own = {
        "connector.class": "io.debezium.connector.mariadb.MariaDbConnector",
        "database.server.id": str(server.port),  # only no two readers of a server may have the same
        "include.schema.changes": "false",
        "schema.history.internal.kafka.bootstrap.servers": bootstrap,
        "schema.history.internal.kafka.topic": f"schema-history-{server.port}",
    }
    return {**own, **_connector(server, mariadb.USER, mariadb.USER, tables, topics), **_dotted(settings)}


def _connector(
    server: Postgres | MariaDb, user: str, schema: str, tables: Sequence[str], topics: str
) -> Mapping[str, str]:
    return {
        "name": CONNECTOR,
        "database.hostname": "127.0.0.1",
        "database.port": str(server.port),
        "database.user": user,
        "database.password": f"${{directory:{server.directory.resolve()}:password}}",
        "table.include.list": ",".join(f"{schema}.{table}" for table in tables),
        "topic.prefix": "statecast",
        "poll.interval.ms": str(POLL_INTERVAL_MS),
        "retriable.restart.connector.wait.ms": "1000",  # after the server was away; 10 s by default
        "transforms": "topics",
        "transforms.topics.type": "org.apache.kafka.connect.transforms.RegexRouter",
        "transforms.topics.regex": rf"statecast\.{schema}\.(.*)",
        "transforms.topics.replacement": topics,
    }


def _dotted(settings: Mapping[str, str]) -> Mapping[str, str]:
    return {name.replace("_", "."): value for name, value in settings.items()}


@dataclass(frozen=True)
class Connect:
    """One standalone Connect worker that keeps its offsets in `directory`; its REST server is on 127.0.0.1 only.

    `connector` is the configuration of its only connector. A worker that is killed sends again the changes that the
    connector read since it last wrote its offsets, which it does each second.
    """

    directory: Path
    port: int
    bootstrap: str
    connector: Mapping[str, str]
    heap: str = "256m"

    @property
    def libs(self) -> Path:
        """The folder of the jars, each of one connector."""
        return MARIADB_LIBS if ".mariadb." in self.connector.get("connector.class", "") else LIBS

    def prepare(self) -> None:
        """Writes the configuration. Raises FileNotFoundError without the jars."""
        if not any(self.libs.glob("debezium-connector-*.jar")):
            raise FileNotFoundError(f"no Debezium jars in {self.libs}: run `make install`")
        self.directory.mkdir(parents=True, exist_ok=True)
        (self.directory / "log4j2.xml").write_text(LOGGING)
        self._connector_file.write_text(json.dumps({"name": CONNECTOR, "config": dict(self.connector)}, indent=2))
        self._worker_file.write_text("".join(f"{name}={value}\n" for name, value in self.worker_settings().items()))

    def command(self) -> list[str]:
        """Returns the command that runs the worker with its connector in the foreground."""
        logging = f"-Dlog4j2.configurationFile={self.directory / 'log4j2.xml'}"
        quick_start = ["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
        java = ["java", f"-Xmx{self.heap}", *quick_start, logging, "-cp", f"{self.libs}/*"]
        files = [str(self._worker_file), str(self._connector_file)]
        return [*java, "org.apache.kafka.connect.cli.ConnectStandalone", *files]

    def unready_reason(self) -> str:
        """Returns why the connector does not stream now, in Connect's words; empty when its only task runs."""
        url = f"http://127.0.0.1:{self.port}/connectors/{CONNECTOR}/status"
        try:
            response = httpx.get(url, timeout=HTTP_TIMEOUT_S, trust_env=False)
        except httpx.HTTPError as error:
            return f"{url}: {error}"
        if not response.is_success:
            return f"{url}: {response.status_code} {response.text[:200].strip()}"
        status = response.json()
        parts = [status["connector"], *status["tasks"]]
        if len(parts) > 1 and all(part["state"] == "RUNNING" for part in parts):
            return ""
        return f"{url}: {response.text[:1000]}"

    @property
    def _worker_file(self) -> Path:
        return self.directory / "worker.properties"

    @property
    def _connector_file(self) -> Path:
        return self.directory / "connector.json"

    def worker_settings(self) -> dict[str, str]:
        """Returns the properties of the worker, which the image of Connect has too."""
        json_converter = "org.apache.kafka.connect.json.JsonConverter"
        return {
            "bootstrap.servers": self.bootstrap,
            "listeners": f"http://127.0.0.1:{self.port}",
            "key.converter": json_converter,
            "key.converter.schemas.enable": "false",
            "key.converter.replace.null.with.default": "false",  # NULL would come as the column's DEFAULT
            "value.converter": json_converter,
            "value.converter.schemas.enable": "false",
            "value.converter.replace.null.with.default": "false",
            "offset.storage.file.filename": str(self.directory / "offsets"),
            "offset.flush.interval.ms": "1000",
            "plugin.discovery": "service_load",
            # So that Connect's REST server, which anyone on the machine may ask, shows a reference and no password.
            "config.providers": "directory",
            "config.providers.directory.class": f"{PROVIDERS}.DirectoryConfigProvider",
            "producer.linger.ms": "0",  # the connector sends batches anyway
            "producer.compression.type": "lz4",
        }


class ConnectProcess(ServerProcess):
    """A Connect worker that runs as a child process and keeps its offsets and its port from one start to the next.

    It answers once its connector runs, which may still have to take its snapshot then.
    """

    def __init__(self, directory: Path, bootstrap: str, connector: Mapping[str, str]) -> None:
        """Writes the configuration below `directory`; `start` runs the worker."""
        self.worker = Connect(directory, free_port(), bootstrap, connector)
        self.worker.prepare()
        super().__init__("Connect", self.worker.command, self._is_running, directory / "connect.log")

    def _is_running(self) -> bool:
        return not self.worker.unready_reason()

    @override
    def _state(self) -> str:
        return f"{self.worker.unready_reason()}\n{super()._state()}"


def running_connect(
    directory: Path, bootstrap: str, connector: Mapping[str, str]
) -> AbstractContextManager[ConnectProcess]:
    """Runs a worker with a connector in the block, and stops it at its end."""
    return ConnectProcess(directory, bootstrap, connector).running()
