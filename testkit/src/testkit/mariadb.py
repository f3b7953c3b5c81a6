"""A real MariaDB with a binlog of rows, from the programs of the system's packages."""

import os
import secrets
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pymysql
from pymysql.cursors import Cursor

from testkit.ports import free_port
from testkit.server_process import ServerProcess
from testkit.system_programs import system_program

SERVER = "mariadb-server-core"
CLIENT = "mariadb-client"
USER = "statecast"
"""The only user that can connect, and the name of the database."""

CONNECT_TIMEOUT_S = 5
SETTINGS = {
    "bind-address": "127.0.0.1",
    "socket": "",  # a socket's path may be too long for the system
    "skip-name-resolve": "ON",
    "server-id": "1",
    "log-bin": "binlog",
    "binlog-format": "ROW",
    "binlog-row-image": "FULL",
    "character-set-server": "utf8mb4",
    "collation-server": "utf8mb4_bin",
    "innodb-buffer-pool-size": "32M",
}


@dataclass(frozen=True)
class MariaDb:
    """One server that keeps its data in `directory` and listens on 127.0.0.1 only.

    `settings` are MariaDB's, on top of those that a connector needs.
    """

    directory: Path
    port: int
    settings: Mapping[str, str] = field(default_factory=dict)

    @property
    def password(self) -> str:
        """The password of USER."""
        return (self.directory / "password").read_text()

    @property
    def url(self) -> str:
        """The URL of the database, with user and password."""
        return f"mysql://{USER}:{self.password}@127.0.0.1:{self.port}/{USER}"

    def prepare(self) -> None:
        """Makes the database if it is new. Without MariaDB's programs the test is skipped, or fails where CI is set."""
        install = system_program("mariadb-install-db", package=SERVER)
        system_program("my_print_defaults", package=CLIENT)  # which the installation calls
        if (self.directory / "prepared").exists():
            return
        shutil.rmtree(self._data, ignore_errors=True)  # the rest of a first start that was killed
        self.directory.mkdir(parents=True, exist_ok=True)
        words = [install, "--no-defaults", f"--datadir={self._data}", "--skip-test-db", *_as_user()]
        subprocess.run(words, check=True, capture_output=True)
        self._write("password", secrets.token_urlsafe(16))
        self._write(
            "users.sql",
            "SET sql_log_bin = 0;\n"
            f"CREATE DATABASE IF NOT EXISTS {USER};\n"
            f"CREATE USER IF NOT EXISTS {USER}@'127.0.0.1' IDENTIFIED BY '{self.password}';\n"
            f"GRANT ALL ON *.* TO {USER}@'127.0.0.1';\n",
        )
        (self.directory / "prepared").touch()

    def command(self) -> list[str]:
        """Returns the command that runs the server in the foreground; SIGTERM ends it in order."""
        own = {"datadir": str(self._data), "port": str(self.port), "init-file": str(self.directory / "users.sql")}
        options = [f"--{name}={value}" for name, value in {**SETTINGS, **self.settings, **own}.items()]
        return [system_program("mariadbd", package=SERVER), "--no-defaults", *options, *_as_user()]

    @contextmanager
    def connection(self, autocommit: bool = True) -> "Iterator[pymysql.Connection[Cursor]]":
        """Yields a connection, closed at the end of the block. Raises pymysql.OperationalError."""
        connection = pymysql.connect(
            host="127.0.0.1",
            port=self.port,
            user=USER,
            password=self.password,
            database=USER,
            charset="utf8mb4",
            autocommit=autocommit,
            connect_timeout=CONNECT_TIMEOUT_S,
        )
        try:
            yield connection
        finally:
            connection.close()

    def answers(self) -> bool:
        """Returns whether the server takes connections now."""
        try:
            with self.connection():
                return True
        except pymysql.OperationalError:
            return False

    @property
    def _data(self) -> Path:
        return self.directory / "data"

    def _write(self, name: str, text: str) -> None:
        file = self.directory / name
        file.touch(mode=0o600)
        file.write_text(text)


class MariaDbProcess(ServerProcess):
    """A server that runs as a child process and keeps its data and its port from one start to the next."""

    ready_timeout_s = 60.0

    def __init__(self, directory: Path, settings: Mapping[str, str] | None = None) -> None:
        """Makes the database below `directory`; `start` runs the server."""
        self.server = MariaDb(directory, free_port(), settings or {})
        self.server.prepare()
        super().__init__("MariaDB", self.server.command, self.server.answers, directory / "mariadb.log")

    def execute(self, statement: str, parameters: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """Runs a statement in a transaction of its own, and returns the rows that it selects, if it does."""
        with self.server.connection() as connection, connection.cursor() as cursor:
            cursor.execute(statement, parameters or None)
            return list(cursor.fetchall())

    def transact(self, *statements: str) -> None:
        """Runs the statements in one transaction."""
        with self.server.connection(autocommit=False) as connection, connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)
            connection.commit()


def running_mariadb(directory: Path, **settings: str) -> AbstractContextManager[MariaDbProcess]:
    """Returns a server that takes connections in the block, and is stopped at its end; underscores stand for dashes."""
    named = {name.replace("_", "-"): value for name, value in settings.items()}
    return MariaDbProcess(directory, named).running()


def _as_user() -> list[str]:
    """Returns the option for root: MariaDB runs as root only with it."""
    return ["--user=root"] if os.geteuid() == 0 else []
