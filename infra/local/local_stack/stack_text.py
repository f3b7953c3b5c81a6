"""Writes down where everything of a running stack is."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from local_stack import stack_file
from local_stack.ledger import Entry
from local_stack.settings import Settings
from local_stack.stack_file import Credentials, Stack

HOST = "127.0.0.1"


@dataclass(frozen=True)
class WholeStackText:
    """Makes the text of the stack file. `settings` has a port for every server."""

    settings: Settings
    authority: Path
    credentials: Mapping[str, Credentials]

    def __call__(self, entries: Mapping[str, Entry]) -> str:
        """The text of the stack file, with the processes as they are now."""
        settings = self.settings
        stack = Stack(
            directory=settings.directory,
            supervisor=stack_file.Supervisor(pid=os.getpid()),
            kafka=stack_file.Kafka(bootstrap=f"{HOST}:{settings.kafka_port}"),
            gateway=self._gateway(),
            edges=tuple(self._edge(number) for number in (1, 2)),
            queries=tuple(self._query(number) for number in (1, 2)),
            simulator=stack_file.Metered(metrics=_metrics(settings.simulator_metrics_port)),
            processor=stack_file.Metered(metrics=_metrics(settings.processor_metrics_port)),
            processes={
                name: stack_file.RunningProcess(pid=entry.pid, log=entry.log) for name, entry in entries.items()
            },
            credentials=dict(self.credentials),
        )
        return stack.model_dump_json(indent=2)

    def _gateway(self) -> stack_file.Gateway:
        plain, secure = self.settings.gateway_http_port, self.settings.gateway_https_port
        return stack_file.Gateway(
            http=f"http://{HOST}:{plain}",
            https=f"https://{HOST}:{secure}",
            ws=f"ws://{HOST}:{plain}",
            wss=f"wss://{HOST}:{secure}",
            ca_certificate=self.authority,
            admin=f"http://{HOST}:{self.settings.gateway_admin_port}",
        )

    def _edge(self, number: int) -> stack_file.Edge:
        port = self.settings.edge_port(number)
        return stack_file.Edge(name=f"edge-{number}", url=f"http://{HOST}:{port}", metrics=_metrics(port))

    def _query(self, number: int) -> stack_file.Query:
        port, shard_port, metrics_port = self.settings.query_ports(number)
        return stack_file.Query(
            name=f"query-{number}",
            address=f"{HOST}:{port}",
            shard_address=f"{HOST}:{shard_port}",
            metrics=_metrics(metrics_port),
        )


def _metrics(port: int) -> str:
    return f"http://{HOST}:{port}/metrics"
