"""The services on a broker with ACLs, each as the process that a user would start, with its own credentials."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
from confluent_kafka import KafkaException
from websockets.sync.client import connect

from kafka_topics.acls import acls
from kafka_topics.topics_file import read_topics
from testkit.ports import free_port, free_ports
from testkit.secured_broker import SecuredBroker
from testkit.service_process import ServiceProcess
from testkit.topics import read_topic
from testkit.waiting import scaled
from testkit.ws_edge.edge import gateway_headers

REPOSITORY = Path(__file__).parents[3]
TOPICS = REPOSITORY / "infra" / "kafka" / "topics.yaml"
PIPELINES = REPOSITORY / "domains"
SECRET = "a-throw-away-secret-of-the-tests"
STAFF = gateway_headers(SECRET, "operator", "staff")

SignIn = Callable[[str], dict[str, object]]
"""The settings with which a service signs in, by its name."""


class SecuredStack:
    """One process of each service; logs and data go below `directory`. Nothing runs before it is started."""

    def __init__(self, directory: Path, broker: SecuredBroker, sign_in: SignIn) -> None:
        self.broker = broker
        self._directory = directory
        self._sign_in = sign_in
        directory.mkdir(parents=True, exist_ok=True)
        query_port, shard_port, query_metrics, edge_port = free_ports(4)
        self.query = self._service(
            "query-service",
            query_metrics,
            port=query_port,
            shard_port=shard_port,
            metrics_port=query_metrics,
            data_directory=directory / "query",
            replicas=1,
            session_timeout_ms=3000,
        )
        self.edge = self._service(
            "ws-edge",
            edge_port,
            port=edge_port,
            query_addresses=f"127.0.0.1:{query_port}",
            gateway_secret=SECRET,
            kafka_timeout_ms=3000,
        )
        self._query, self._edge = f"127.0.0.1:{query_port}", f"127.0.0.1:{edge_port}"
        self.simulator = self.new_simulator("orders")
        self.processor = self.new_processor("orders-by-key")

    def new_simulator(self, domain: str) -> ServiceProcess:
        """Returns a simulator of a domain, with a small database of its own."""
        port, database = free_port(), self._directory / f"{domain}.sqlite3"
        return self._service("cdc-simulator", port, metrics_port=port, domain=domain, database=database, rows=20)

    def new_processor(self, *pipelines: str) -> ServiceProcess:
        """Returns a processor of these pipelines, with checkpoints of its own."""
        port, files = free_port(), [str(next(PIPELINES.rglob(f"{name}.yaml"))) for name in pipelines]
        settings = {"metrics_port": port, "checkpoints": self._directory / "checkpoints" / pipelines[0]}
        return self._service("stream-processor", port, *files, **settings)

    def close(self) -> None:
        """Ends every process."""
        for process in (self.simulator, self.processor, self.query, self.edge):
            process.close()

    def kafka_topics(self, file: Path = TOPICS) -> "subprocess.CompletedProcess[str]":
        """Runs `kafka-topics` to its end, with a properties file."""
        properties = self._directory / "client.properties"
        settings = self._sign_in("kafka-topics").items()
        lines = [f"{name.removeprefix('kafka_').replace('_', '.')}={value}" for name, value in settings]
        properties.write_text("\n".join(lines).replace("bootstrap=", "bootstrap.servers="))
        command = [sys.executable, "-m", "kafka_topics", str(file), "--command-config", str(properties)]
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=scaled(60))

    def newest_order(self) -> str:
        """Returns the highest order id of the keyed topic, of an order that is not deleted; empty when there is none.

        Raises AssertionError just after the broker's start.
        """
        try:
            records = read_topic(self.broker.bootstrap, "orders-by-key")
        except KafkaException as error:
            raise AssertionError("the broker has not taken its partitions yet") from error
        live = {record.key.decode(): record.value is not None for record in records}
        return max((key for key, stands in live.items() if stands), default="")

    def order(self, order_id: str) -> dict[str, Any]:
        """Returns the order, as staff get it from the edge. Raises AssertionError while it is not there."""
        answer = httpx.get(f"http://{self._edge}/update/orders/{order_id}", headers=STAFF, timeout=scaled(10))
        assert answer.status_code == 200, f"{answer.status_code} {answer.text}"
        body: dict[str, Any] = answer.json()
        return body

    def first_frame(self, order_id: str) -> str:
        """Returns the first frame that the edge sends to a watch of the order."""
        with connect(f"ws://{self._edge}/update/orders/{order_id}", additional_headers=STAFF) as socket:
            return str(socket.recv(scaled(10)))

    def revoke(self, consumer: str) -> bool:
        """Ends a consumer's access, which the edge writes to Kafka. Raises AssertionError when it says to try again."""
        url, body = f"http://{self._edge}/v1/revocations", {"consumer": consumer}
        answer = httpx.post(url, json=body, headers=STAFF, timeout=scaled(20))
        assert answer.status_code != 503, answer.text
        return answer.is_success

    def each_local(self, store: str, *command: str) -> "subprocess.CompletedProcess[str]":
        """Runs a command for every row of a store to its end, as a job beside the instance."""
        settings = self._sign_in("statecast-jobs").items()
        environment = {**os.environ, **{f"STATECAST_JOBS_{name}".upper(): str(value) for name, value in settings}}
        options = [store, "--run", "all-of-them", "--address", self._query]
        words = [sys.executable, "-m", "statecast_client", "each-local", *options, "--", *command]
        return subprocess.run(words, env=environment, capture_output=True, text=True, check=False, timeout=scaled(60))

    def logs(self) -> str:
        """Returns everything that any of the services has logged."""
        return "".join(file.read_text(errors="replace") for file in self._directory.glob("*.log"))

    def _service(self, name: str, status_port: int, *arguments: str, **settings: object) -> ServiceProcess:
        package = name.replace("-", "_")
        log_file = self._directory / f"{name}-{status_port}.log"
        return ServiceProcess(package, {**self._sign_in(name), **settings}, log_file, status_port, arguments)


def grant(broker: SecuredBroker) -> None:
    """Gives every service a password, and the ACLs that the topics file lists."""
    granted = acls(read_topics(TOPICS))
    for service in {acl.service for acl in granted}:
        broker.set_password(service, f"password-of-{service}")
    for acl in granted:
        broker.allow(acl.service, acl.operations, acl.kind, acl.names)
