"""Real Kafka brokers, one or a cluster of them: KRaft, from the jars that Maven fetched for the local stack."""

import signal
import subprocess
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from testkit.ports import free_port
from testkit.repository_files import KAFKA_POM
from testkit.server_process import ServerProcess

LIBS = KAFKA_POM.parent / "target" / "libs"
CLUSTER_ID = "c3RhdGVjYXN0LWxvY2FsMQ"

QUORUM = 3
"""Of so many brokers on each is a controller, too, so that any one may go; of fewer only the first is."""

METADATA_TIMEOUT_S = 10.0

SMALL_HEAP = "160m"
"""Enough for a broker of a cluster that tests use."""

LOGGING = """
<Configuration status="WARN">
  <Appenders><Console name="out"><PatternLayout pattern="%d %p %c{1} %m%n"/></Console></Appenders>
  <Loggers><Root level="WARN"><AppenderRef ref="out"/></Root></Loggers>
</Configuration>
"""


@dataclass(frozen=True)
class Broker:
    """One broker that keeps its data in `directory` and listens on 127.0.0.1 only.

    `controllers` has the ports of the cluster's controllers by node; none make the broker a cluster of its own.
    `listeners` are its ports by name beside the plain one; `settings` are Kafka's, on top of those that fit a test.
    """

    directory: Path
    port: int
    controller_port: int
    heap: str = "512m"
    node: int = 1
    controllers: Mapping[int, int] = field(default_factory=dict)
    settings: Mapping[str, str] = field(default_factory=dict)
    listeners: Mapping[str, int] = field(default_factory=dict)

    @property
    def bootstrap(self) -> str:
        """The bootstrap address, as `host:port`."""
        return f"127.0.0.1:{self.port}"

    def prepare(self) -> None:
        """Writes the configuration and formats the storage if it is new. Raises FileNotFoundError without the jars."""
        if not any(LIBS.glob("kafka_*.jar")):
            raise FileNotFoundError(f"no Kafka jars in {LIBS}: run `make install`, or `make test` of a service alone")
        self.directory.mkdir(parents=True, exist_ok=True)
        (self.directory / "log4j2.xml").write_text(LOGGING)
        self._properties.write_text(self._configuration())
        if not (self.directory / "data" / "meta.properties").exists():
            command = [
                *self._java(),
                "kafka.tools.StorageTool",
                "format",
                "-t",
                CLUSTER_ID,
                "-c",
                str(self._properties),
            ]
            subprocess.run(command, check=True, capture_output=True)

    def command(self) -> list[str]:
        """Returns the command that runs the broker in the foreground."""
        return [*self._java(), "kafka.Kafka", str(self._properties)]

    def answers(self) -> bool:
        """Returns whether the broker serves metadata now."""
        admin = AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})
        try:
            admin.list_topics(timeout=1)
        except KafkaException:
            return False
        return True

    @property
    def _properties(self) -> Path:
        return self.directory / "server.properties"

    def _java(self) -> list[str]:
        logging = f"-Dlog4j2.configurationFile={self.directory / 'log4j2.xml'}"
        memory = [f"-Xmx{self.heap}", *(["-XX:+UseSerialGC"] if self.controllers else [])]  # many, and none in a hurry
        return ["java", *memory, logging, "-cp", f"{LIBS}/*"]

    def _configuration(self) -> str:
        controllers = self.controllers or {self.node: self.controller_port}
        controls = self.node in controllers
        listener = f"PLAINTEXT://127.0.0.1:{self.port}"
        settings = {
            "process.roles": "broker,controller" if controls else "broker",
            "node.id": str(self.node),
            "controller.quorum.voters": ",".join(f"{node}@127.0.0.1:{port}" for node, port in controllers.items()),
            "controller.listener.names": "CONTROLLER",
            "listeners": f"{listener},CONTROLLER://127.0.0.1:{controllers[self.node]}" if controls else listener,
            "advertised.listeners": f"PLAINTEXT://127.0.0.1:{self.port}",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "log.dirs": str(self.directory / "data"),
            "auto.create.topics.enable": "false",
            "offsets.topic.replication.factor": "1",
            "offsets.topic.num.partitions": "4",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "group.initial.rebalance.delay.ms": "0",
            "group.min.session.timeout.ms": "1000",
            **self.settings,
        }
        for name, port in self.listeners.items():
            for listening in ("listeners", "advertised.listeners"):
                settings[listening] += f",{name}://127.0.0.1:{port}"
        return "".join(f"{name}={value}\n" for name, value in settings.items())


class BrokerProcess(ServerProcess):
    """A broker that runs as a child process and keeps its data and its port from one start to the next."""

    def __init__(
        self,
        directory: Path,
        heap: str = "512m",
        node: int = 1,
        controllers: Mapping[int, int] | None = None,
        settings: Mapping[str, str] | None = None,
        listeners: Mapping[str, int] | None = None,
    ) -> None:
        """Formats the storage below `directory`, for a broker with these fields; `start` runs the broker."""
        ports = free_port(), free_port()
        self._broker = Broker(directory, *ports, heap, node, controllers or {}, settings or {}, listeners or {})
        self._broker.prepare()
        super().__init__("the broker", self._broker.command, self._broker.answers, directory / "broker.log")
        self.node = node

    @property
    def bootstrap(self) -> str:
        """The bootstrap address, as `host:port`."""
        return self._broker.bootstrap

    def pause(self) -> None:
        """Freezes the broker (SIGSTOP): its port is open, and nothing answers."""
        self._launched.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Lets a paused broker continue (SIGCONT)."""
        self._launched.send_signal(signal.SIGCONT)


@dataclass(frozen=True)
class BrokerCluster:
    """Brokers by their nodes, from 1 on. A silent one is taken for dead, and its partitions move, after 3 s."""

    brokers: Mapping[int, BrokerProcess]

    @cached_property
    def bootstrap(self) -> str:
        """The addresses of all, as `host:port,host:port`."""
        return ",".join(broker.bootstrap for broker in self.brokers.values())

    def out_of_sync(self) -> list[str]:
        """Returns the partitions that a broker has to catch up with, as `topic/partition`."""
        topics = self._admin().list_topics(timeout=METADATA_TIMEOUT_S).topics
        return [
            f"{name}/{number}"
            for name, topic in topics.items()
            for number, partition in topic.partitions.items()
            if len(partition.isrs) < len(partition.replicas)
        ]

    def coordinator(self, group: str) -> int:
        """Returns the node that coordinates a consumer group now. Raises KafkaException while there is none."""
        admin = self._admin()
        coordinator = (
            admin.describe_consumer_groups([group], request_timeout=METADATA_TIMEOUT_S)[group].result().coordinator
        )
        assert coordinator is not None
        return int(coordinator.id)

    def _admin(self) -> AdminClient:
        return AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})


def running_broker(directory: Path, heap: str = "512m") -> AbstractContextManager[BrokerProcess]:
    """Returns a broker that answers in the block, and is stopped at its end."""
    return BrokerProcess(directory, heap).running()


@contextmanager
def running_brokers(directory: Path, count: int, heap: str = SMALL_HEAP, **settings: str) -> Iterator[BrokerCluster]:
    """Yields a cluster once all of its brokers answer, and kills them at the end of the block.

    Topics have a replica on each broker, and all but one must have a record before it is acknowledged. `settings` are
    Kafka's, with underscores for dots.
    """
    controllers = {node: free_port() for node in range(1, (count if count >= QUORUM else 1) + 1)}
    of_kafka = {**_settings_of_cluster(count), **{name.replace("_", "."): value for name, value in settings.items()}}

    def prepared(node: int) -> BrokerProcess:
        return BrokerProcess(directory / f"broker-{node}", heap, node, controllers, of_kafka)

    with ThreadPoolExecutor() as formats:
        cluster = BrokerCluster({each.node: each for each in formats.map(prepared, range(1, count + 1))})
    try:
        for broker in cluster.brokers.values():
            broker.launch()
        for broker in cluster.brokers.values():
            broker.wait_ready()
        yield cluster
    finally:
        for broker in cluster.brokers.values():
            broker.kill()


def _settings_of_cluster(count: int) -> dict[str, str]:
    replicas, in_sync = str(count), str(max(1, count - 1))
    return {
        "default.replication.factor": replicas,
        "min.insync.replicas": in_sync,
        "offsets.topic.replication.factor": replicas,
        "transaction.state.log.replication.factor": replicas,
        "transaction.state.log.min.isr": in_sync,
        "broker.session.timeout.ms": "3000",
        "broker.heartbeat.interval.ms": "500",
        "log.cleaner.dedupe.buffer.size": str(4 << 20),  # by default most of a small heap
    }
