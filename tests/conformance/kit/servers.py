"""The broker and the databases of a run; each starts when the first case needs it."""

import os
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path

from testkit.broker import BrokerProcess, running_broker
from testkit.mariadb import MariaDbProcess, running_mariadb
from testkit.postgres import PostgresProcess, running_postgres

CONNECTORS = "40"
"""How many connectors may follow a database at once."""


class Servers:
    """Servers by name, which end with the stack; all files are below `directory`."""

    def __init__(self, directory: Path, stack: ExitStack) -> None:
        self.directory = directory
        self.stack = stack

    @cached_property
    def broker(self) -> BrokerProcess:
        return self.stack.enter_context(running_broker(self.directory / "broker"))

    @cached_property
    def postgres(self) -> PostgresProcess:
        slots = {"max_replication_slots": CONNECTORS, "max_wal_senders": CONNECTORS}
        return self.stack.enter_context(running_postgres(self.directory / "postgres", **slots))

    @cached_property
    def mariadb(self) -> MariaDbProcess:
        return self.stack.enter_context(running_mariadb(self.directory / "mariadb"))

    def url(self, source: str) -> str:
        """Returns the URL of the database that a case names."""
        return self.postgres.server.dsn if source == "postgres" else self.mariadb.server.url

    @property
    def domains(self) -> Path:
        """The directory of all domains, which the processor follows."""
        return self.directory / "domains"

    @property
    def messages(self) -> Path:
        """The directory of all messages, which every service and command is told by the environment."""
        return self.directory / "messages"

    def mount_messages(self) -> None:
        """Tells this process and all that it starts where the messages are, until the stack ends."""
        for directory in (self.messages, self.domains):
            directory.mkdir(parents=True)
        os.environ["STATECAST_DESCRIPTORS"] = str(self.messages)
        self.stack.callback(os.environ.pop, "STATECAST_DESCRIPTORS")
