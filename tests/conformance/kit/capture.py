"""Brings the tables of the cases in as a user does: `statecast import`, and the connector that it writes."""

import io
import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from itertools import groupby
from pathlib import Path

import httpx

from kit.case import Case
from kit.domain_files import edit_pipelines, prefix_of, store_of
from kit.servers import Servers
from kit.sessions import Sessions
from statecast_onboarding import import_command
from statecast_onboarding.connector_file import JSON_CONVERTER
from testkit.debezium import Connect, mariadb_connector
from testkit.ports import free_port
from testkit.server_process import ServerProcess
from testkit.waiting import wait_until

CONNECT_TIMEOUT_S = 30.0
_PASSWORD = "database.password"
_OF_MARIADB = {
    "decimal.handling.mode": "string",
    "tombstones.on.delete": "true",
    "key.converter": JSON_CONVERTER,
    "key.converter.schemas.enable": "false",
    "key.converter.replace.null.with.default": "false",
    "value.converter": JSON_CONVERTER,
    "value.converter.replace.null.with.default": "false",
    "value.converter.schemas.enable": "true",
}
"""The settings that `statecast import` writes for PostgreSQL, for the databases that it does not read."""


class Worker(ServerProcess):
    """A Connect worker without connectors, which gets them by its REST address."""

    def __init__(self, directory: Path, bootstrap: str, first: Mapping[str, str]) -> None:
        """`first` is the configuration of a connector; its database decides which jars the worker has."""
        worker = Connect(directory, free_port(), bootstrap, first)
        worker.prepare()
        self.url = f"http://127.0.0.1:{worker.port}"
        super().__init__("Connect", lambda: worker.command()[:-1], self._answers, directory / "connect.log")

    def put(self, name: str, config: Mapping[str, str]) -> None:
        """Creates or changes a connector, and waits until it runs."""
        url = f"{self.url}/connectors/{name}"
        httpx.put(f"{url}/config", json=dict(config), timeout=CONNECT_TIMEOUT_S, trust_env=False).raise_for_status()
        wait_until(lambda: self._runs(url), lambda: self.log[-4000:])

    def _answers(self) -> bool:
        try:
            return httpx.get(f"{self.url}/connectors", timeout=CONNECT_TIMEOUT_S, trust_env=False).is_success
        except httpx.HTTPError:
            return False

    @staticmethod
    def _runs(url: str) -> bool:
        response = httpx.get(f"{url}/status", timeout=CONNECT_TIMEOUT_S, trust_env=False)
        if not response.is_success:
            return False
        status = response.json()
        parts = [status["connector"], *status["tasks"]]
        return len(parts) > 1 and all(part["state"] == "RUNNING" for part in parts)


class Capture:
    """The connectors of all cases: one for those of a database without settings, and one for each other case."""

    def __init__(self, servers: Servers, sessions: Sessions) -> None:
        self._servers = servers
        self._sessions = sessions
        self._workers: dict[str, Worker] = {}
        self.refusals: dict[str, str] = {}
        """The output of `statecast import` where it refused a table, by the case."""

    def begin(self, cases: Sequence[Case]) -> None:
        """Makes the tables, imports them, and starts the connectors."""
        captured = sorted((case for case in cases if case.source != "topic"), key=prefix_of)
        for case in captured:
            if case.before:
                self._sessions.of(case).execute(case.before)
            for table in case.tables_at_once:
                self.import_table(case, table)
        for prefix, group in groupby(captured, key=prefix_of):
            self.configure(prefix, list(group))

    def out(self, prefix: str) -> Path:
        """Returns where the files of a connector's tables are."""
        return self._servers.directory / "imported" / prefix

    def import_table(self, case: Case, table: str) -> None:
        """Runs `statecast import`; keeps its refusal for the case."""
        options, prefix = case.tables[table], prefix_of(case)
        shapes = [word for shape in options.shapes for word in ("--shape", shape)]
        named = {"--group": options.group, "--sort": options.sort, "--owner": options.owner}
        chosen = [word for name, value in named.items() if value is not None for word in (name, value)]
        place = ["--topic-prefix", prefix, "--name", store_of(case, table), "--partitions", "1"]
        url = self._servers.postgres.server.dsn
        words = [url, "--table", f"{case.identifier}.{table}", "--out", str(self.out(prefix)), *place]
        with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()) as said:
            status = import_command.main([*words, *shapes, *chosen])
        if status:
            self.refusals[case.name] = said.getvalue()
            return
        pipelines = self.out(prefix) / "pipelines"
        edit_pipelines(case, table, pipelines)
        domain = self._servers.domains / prefix
        if not domain.exists():
            domain.symlink_to(pipelines, target_is_directory=True)
        self._servers.messages.mkdir(parents=True, exist_ok=True)
        for file in (self.out(prefix) / "messages").iterdir():
            shutil.copy(file, self._servers.messages)

    def configure(self, prefix: str, cases: Sequence[Case]) -> None:
        """Gives the connector its configuration, as `PUT /connectors/NAME/config`, and waits until it runs."""
        source = cases[0].source
        config = self._postgres(prefix) if source == "postgres" else self._mariadb(prefix, cases)
        if not config:
            return
        config = {name: value for name, value in {**config, **(cases[0].connector or {})}.items() if value is not None}
        self._worker(source, config).put(prefix, config)

    def _worker(self, source: str, config: Mapping[str, str]) -> Worker:
        if source not in self._workers:
            worker = Worker(self._servers.directory / f"connect-{source}", self._servers.broker.bootstrap, config)
            self._workers[source] = self._servers.stack.enter_context(worker.running())
        return self._workers[source]

    def url(self, source: str) -> str:
        """Returns the address of the worker."""
        return self._workers[source].url

    def log(self) -> Iterator[str]:
        """Returns the logs of the workers."""
        return (worker.log for worker in self._workers.values())

    def _postgres(self, prefix: str) -> Mapping[str, str]:
        file = self.out(prefix) / "connector.json"
        if not file.exists():
            return {}
        return {**json.loads(file.read_text()), _PASSWORD: self._servers.postgres.server.password}

    def _mariadb(self, prefix: str, cases: Sequence[Case]) -> Mapping[str, str]:
        server = self._servers.mariadb.server
        config = dict(mariadb_connector(server, self._servers.broker.bootstrap, [], **{"topic.prefix": prefix}))
        for name in [name for name in config if name.startswith("transforms") or name == "name"]:
            del config[name]
        tables = [f"{case.identifier}.{table}" for case in cases for table in case.topics]
        own = {
            "table.include.list": ",".join(tables),
            "database.server.id": str(1000 + len(prefix) + sum(map(ord, prefix))),
            "schema.history.internal.kafka.topic": f"schema-history-{prefix}",
            _PASSWORD: server.password,
        }
        return {**config, **_OF_MARIADB, **own}
