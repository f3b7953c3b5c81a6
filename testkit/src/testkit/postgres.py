"""A real PostgreSQL with logical decoding, from the programs that Maven fetched for the local stack."""

import os
import pwd
import secrets
import shutil
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
from typing_extensions import override

from testkit import processes
from testkit.ports import free_port
from testkit.server_process import ServerProcess

PROGRAMS = Path(__file__).resolve().parents[3] / "infra" / "local" / "postgres" / "target" / "postgres" / "bin"

USER = "statecast"
"""The only user, and the name of the database."""

UNPRIVILEGED_USER = "nobody"
"""The user of PostgreSQL when root starts it: it refuses to run as root."""

AUTHENTICATION = "scram-sha-256"
TEXT = ("--encoding=UTF8", "--locale=C")
"""The options of `initdb` for the form of texts."""

CONNECT_TIMEOUT_S = 5
SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",  # a socket's path may be too long for the system
    "wal_level": "logical",
    "shared_buffers": "32MB",
}


def connect(dsn: str) -> psycopg.Connection:
    """Opens a connection that commits each statement by itself. Raises psycopg.OperationalError."""
    return psycopg.connect(dsn, autocommit=True, connect_timeout=CONNECT_TIMEOUT_S)


def execute(dsn: str, statement: str, parameters: Sequence[object] = ()) -> list[tuple[Any, ...]]:
    """Runs a statement on a connection of its own, and returns the rows that it selects, if it does."""
    with connect(dsn) as connection:
        # Without parameters several statements may come at once, and a percent sign is one.
        cursor = connection.execute(statement.encode(), parameters or None)
        return cursor.fetchall() if cursor.description else []


@dataclass(frozen=True)
class Postgres:
    """One server that keeps its data in `directory` and listens on 127.0.0.1 only.

    `settings` are PostgreSQL's, on top of those that logical decoding needs.
    """

    directory: Path
    port: int
    settings: Mapping[str, str] = field(default_factory=dict)

    @property
    def password(self) -> str:
        """The password of USER, which is made up when it is read first."""
        return self._existing_password_file().read_text()

    @property
    def dsn(self) -> str:
        """The URL of the database, with user and password."""
        return f"postgresql://{USER}:{self.password}@127.0.0.1:{self.port}/{USER}"

    def prepare(self) -> None:
        """Makes the database if it is new. Raises FileNotFoundError without the programs."""
        if not (PROGRAMS / "postgres").exists():
            raise FileNotFoundError(f"no PostgreSQL in {PROGRAMS}: run `make install`")
        if (self.directory / "prepared").exists():
            return
        shutil.rmtree(self._data, ignore_errors=True)  # the rest of a first start that was killed
        self._data.mkdir(parents=True, mode=0o700)
        if os.geteuid() == 0:
            user = pwd.getpwnam(UNPRIVILEGED_USER)
            os.chown(self._data, user.pw_uid, user.pw_gid)
        program = _as_unprivileged_user()
        access = [f"--auth={AUTHENTICATION}", f"--username={USER}", f"--pwfile={self._existing_password_file()}"]
        initialise = [*program, str(PROGRAMS / "initdb"), *access, *TEXT, "--no-sync", "-D", str(self._data)]
        subprocess.run(initialise, check=True, capture_output=True)
        single_user = [*program, str(PROGRAMS / "postgres"), "--single", "-D", str(self._data), "postgres"]
        create = f"CREATE DATABASE {USER}".encode()
        subprocess.run(single_user, input=create, check=True, capture_output=True)
        (self.directory / "prepared").touch()

    def command(self) -> list[str]:
        """Returns the command that runs the server in the foreground.

        SIGINT ends it, SIGTERM when its clients have gone.
        """
        settings = {**SETTINGS, **self.settings, "port": str(self.port)}
        options = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        return [*_as_unprivileged_user(), str(PROGRAMS / "postgres"), "-D", str(self._data), *options]

    def answers(self) -> bool:
        """Returns whether the server takes connections now."""
        try:
            connect(self.dsn).close()
        except psycopg.OperationalError:
            return False
        return True

    @property
    def _data(self) -> Path:
        return self.directory / "data"

    def _existing_password_file(self) -> Path:
        file = self.directory / "password"
        if not file.exists():
            self.directory.mkdir(parents=True, exist_ok=True)
            file.touch(mode=0o600)
            file.write_text(secrets.token_urlsafe(16))
        return file


class PostgresProcess(ServerProcess):
    """A server that runs as a child process and keeps its data and its port from one start to the next."""

    ready_timeout_s = 60.0

    def __init__(self, directory: Path, settings: Mapping[str, str] | None = None) -> None:
        """Makes the database below `directory`; `start` runs the server."""
        self.server = Postgres(directory, free_port(), settings or {})
        self.server.prepare()
        super().__init__("PostgreSQL", self.server.command, self.server.answers, directory / "postgres.log")

    def execute(self, statement: str, parameters: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """Runs a statement in a transaction of its own, and returns the rows that it selects, if it does."""
        return execute(self.server.dsn, statement, parameters)

    @override
    def stop(self) -> None:
        """Ends the server in order, with all connections, if it runs."""
        if self._process is not None:
            self._process.send_signal(signal.SIGINT)
            self._process.wait()

    @override
    def kill(self) -> None:
        """Ends the server with all its processes at once, as `kill -9` does, if it runs."""
        if self._process is not None:
            processes.kill_family(self._process.pid)
            self._process.wait()


def running_postgres(directory: Path, **settings: str) -> AbstractContextManager[PostgresProcess]:
    """Returns a server that takes connections in the block, and is stopped at its end."""
    return PostgresProcess(directory, settings).running()


def _as_unprivileged_user() -> list[str]:
    if os.geteuid() != 0:
        return []
    if shutil.which("setpriv") is None:
        raise FileNotFoundError("root cannot run PostgreSQL without setpriv (of util-linux): install it")
    user = pwd.getpwnam(UNPRIVILEGED_USER)
    # The capability lets that user read programs and data in directories that are root's own. The change of user
    # would undo that the server ends with the program that started it.
    may_read = ["--inh-caps=+dac_override", "--ambient-caps=+dac_override", "--pdeathsig=KILL"]
    return ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups", *may_read]
