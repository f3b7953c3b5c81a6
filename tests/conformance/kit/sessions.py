"""Runs the SQL of the cases, each in a schema or database of its own, in sessions that stay open."""

from typing import Any, Protocol

import psycopg
import pymysql
from pymysql.constants import CLIENT

from kit.case import Case
from kit.servers import Servers
from testkit import mariadb, postgres


class Session(Protocol):
    """A connection that commits each statement by itself."""

    def execute(self, statements: str) -> object:
        """Runs statements one after the other."""


class _Postgres:
    def __init__(self, connection: psycopg.Connection) -> None:
        self._connection = connection

    def execute(self, statements: str) -> object:
        return self._connection.execute(statements.encode())


class _MariaDb:
    def __init__(self, connection: "pymysql.Connection[Any]") -> None:
        self._connection = connection

    def execute(self, statements: str) -> object:
        with self._connection.cursor() as cursor:
            cursor.execute(statements)
            while cursor.nextset():
                pass
        return None


class Sessions:
    """The open sessions of all cases, which end with the stack."""

    def __init__(self, servers: Servers) -> None:
        self._servers = servers
        self._sessions: dict[tuple[str, str], Session] = {}

    def of(self, case: Case, name: str = "") -> Session:
        """Returns the session of the case by this name, which is opened where it is new."""
        key = case.name, name
        if key not in self._sessions:
            self._sessions[key] = self._postgres(case) if case.source == "postgres" else self._mariadb(case)
        return self._sessions[key]

    def _postgres(self, case: Case) -> Session:
        connection = self._servers.stack.enter_context(postgres.connect(self._servers.postgres.server.dsn))
        connection.execute(f"CREATE SCHEMA IF NOT EXISTS {case.identifier}".encode())
        connection.execute(f"SET search_path = {case.identifier}".encode())
        return _Postgres(connection)

    def _mariadb(self, case: Case) -> Session:
        server = self._servers.mariadb
        connection = pymysql.connect(
            host="127.0.0.1",
            port=server.server.port,
            user=mariadb.USER,
            password=server.server.password,
            charset="utf8mb4",
            autocommit=True,
            client_flag=CLIENT.MULTI_STATEMENTS,
        )
        self._servers.stack.callback(connection.close)
        session = _MariaDb(connection)
        session.execute(f"CREATE DATABASE IF NOT EXISTS {case.identifier}")
        session.execute(f"USE {case.identifier}")
        return session
