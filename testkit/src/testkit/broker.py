"""A real Kafka broker: one node, KRaft, from the jars that Maven fetched for the local stack."""

import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from testkit import processes
from testkit.ports import free_ports
from testkit.waiting import wait_until

LIBS = Path(__file__).resolve().parents[3] / "infra" / "local" / "kafka" / "target" / "libs"
CLUSTER_ID = "c3RhdGVjYXN0LWxvY2FsMQ"

LOGGING = """
<Configuration status="WARN">
  <Appenders><Console name="out"><PatternLayout pattern="%d %p %c{1} %m%n"/></Console></Appenders>
  <Loggers><Root level="WARN"><AppenderRef ref="out"/></Root></Loggers>
</Configuration>
"""


@dataclass(frozen=True)
class Broker:
    """One broker that keeps its data in `directory` and listens on 127.0.0.1 only.

    `listeners` are its ports by name beside the plain one; `settings` are Kafka's, on top of those that fit a test.
    """

    directory: Path
    port: int
    controller_port: int
    heap: str = "512m"
    settings: Mapping[str, str] = field(default_factory=dict)
    listeners: Mapping[str, int] = field(default_factory=dict)

    @property
    def bootstrap(self) -> str:
        """The bootstrap address, as `host:port`."""
        return f"127.0.0.1:{self.port}"

    def prepare(self) -> None:
        """Writes the configuration and formats the storage if it is new. Raises FileNotFoundError without the jars."""
        if not any(LIBS.glob("kafka_*.jar")):
            raise FileNotFoundError(f"no Kafka jars in {LIBS}: run `make install`")
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
        """The command that runs the broker in the foreground."""
        return [*self._java(), "kafka.Kafka", str(self._properties)]

    def answers(self) -> bool:
        """Whether the broker serves metadata now."""
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
        return ["java", f"-Xmx{self.heap}", logging, "-cp", f"{LIBS}/*"]

    def _configuration(self) -> str:
        settings = {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.voters": f"1@127.0.0.1:{self.controller_port}",
            "controller.listener.names": "CONTROLLER",
            "listeners": f"PLAINTEXT://127.0.0.1:{self.port},CONTROLLER://127.0.0.1:{self.controller_port}",
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


class BrokerProcess:
    """A broker that runs as a child process and keeps its data and its port from one start to the next."""

    def __init__(
        self,
        directory: Path,
        heap: str = "512m",
        settings: Mapping[str, str] | None = None,
        listeners: Mapping[str, int] | None = None,
    ) -> None:
        """Formats the storage below `directory`; `start` runs the broker."""
        port, controller_port = free_ports(2)
        self._broker = Broker(directory, port, controller_port, heap, settings or {}, listeners or {})
        self._broker.prepare()
        self._log_file = directory / "broker.log"
        self._process: processes.Popen | None = None

    @property
    def bootstrap(self) -> str:
        """The bootstrap address, as `host:port`."""
        return self._broker.bootstrap

    def answers(self) -> bool:
        """Whether the broker serves metadata now."""
        return self._broker.answers()

    def start(self, timeout_s: float = 120.0) -> None:
        """Starts the broker and waits until it answers. Raises AssertionError with the end of its log."""
        self._process = process = processes.start(self._broker.command(), self._log_file)
        wait_until(lambda: process.poll() is not None or self.answers(), self._log_tail, timeout_s)
        assert process.poll() is None, f"the broker has ended:\n{self._log_tail()}"

    def stop(self) -> None:
        """Stops the broker in order, if it runs."""
        if self._process is not None:
            processes.stop(self._process.pid)
            self._process.wait()

    def kill(self) -> None:
        """Ends the broker at once, as `kill -9` does, if it runs."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def _log_tail(self) -> str:
        return processes.tail(self._log_file, 40)


@contextmanager
def running_broker(directory: Path, heap: str = "512m") -> Iterator[BrokerProcess]:
    """Yields a broker that answers, and stops it at the end of the block."""
    broker = BrokerProcess(directory, heap)
    try:
        broker.start()
        yield broker
    finally:
        broker.stop()
