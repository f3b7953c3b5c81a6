"""Instances of the query service as processes that share one keyed topic."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from shutil import rmtree
from uuid import uuid4

from testkit.ports import free_ports
from testkit.service_process import ServiceProcess
from testkit.topics import create_topic
from testkit.waiting import eventually

MAX_LAG_S = 10.0
STORE = "states"
MESSAGE = "statecast.orders.v1.Order"
PARTITIONS = 4
REPLICAS = 2
SESSION_TIMEOUT_MS = 3000
DRAIN_S = 30


class QueryInstance(ServiceProcess):
    """An instance that keeps its name, its ports and its directory from one start to the next."""

    def __init__(self, name: str, settings: Mapping[str, object], directory: Path) -> None:
        """Chooses ports; data and log go below `directory`. Nothing runs before `start`."""
        port, shard_port, metrics_port = free_ports(3)
        self.name = name
        self.address = f"127.0.0.1:{port}"
        self.shard_address = f"127.0.0.1:{shard_port}"
        self.data = directory / name
        ports = {"port": port, "shard_port": shard_port, "metrics_port": metrics_port}
        own = {"instance": name, "data_directory": self.data, **ports}
        super().__init__("query_service", {**settings, **own}, directory / f"{name}.log", metrics_port)

    def assert_members(self, count: int) -> None:
        """Raises AssertionError while the instance does not see this many in the group."""
        try:
            members = self.metric("query_service_members")
        except OSError as error:
            raise AssertionError(f"{self.name}: {error}") from error

        assert members == count, f"{self.name} sees {members:g} members"

    def assert_current(self) -> None:
        """Raises AssertionError while the instance does not know that it has all recent records."""
        lag_s = self.metric("query_service_lag_seconds")

        assert lag_s < MAX_LAG_S, f"{self.name} lags by {lag_s:.1f} s over all its partitions"

    def drain(self, timeout_s: float) -> None:
        """Sends SIGTERM and waits until the process has ended well."""
        status = self.stop(timeout_s)
        assert status == 0, f"{self.name} has ended with {status}: {self.log_tail()}"

    def wipe(self) -> None:
        """Removes its directory."""
        rmtree(self.data)


class QueryCluster:
    """A keyed topic, and those who serve it as the store `states` with two replicas."""

    def __init__(
        self,
        bootstrap: str,
        directory: Path,
        topic: Mapping[str, str],
        message: str,
        partitions: int = PARTITIONS,
        **settings: object,
    ) -> None:
        """Makes the topic, with settings of its own; `settings` go to every instance on top of those of the cluster."""
        self.partitions = partitions
        self.bootstrap = bootstrap
        self.topic = f"{STORE}-{uuid4().hex[:8]}"
        self.instances: dict[str, QueryInstance] = {}
        self._directory = directory
        self._settings = settings
        self._create_topic(self.topic, topic)
        self._stores.write_text(f"stores:\n  - {{name: {STORE}, topic: {self.topic}, message: {message}}}\n")

    def add_store(self, name: str, message: str, **fields: object) -> None:
        """Makes a topic, which instances that are started from now on serve under its own name.

        `fields` are further keys of its entry in the stores file.
        """
        self._create_topic(name, {})
        with self._stores.open("a") as stores:
            stores.write(f"  - {json.dumps({'name': name, 'topic': name, 'message': message, **fields})}\n")

    def add(self, name: str) -> QueryInstance:
        """Starts a new instance and returns it before it is ready."""
        instance = QueryInstance(name, self._instance_settings, self._directory)
        self.instances[name] = instance
        instance.start()
        return instance

    def start(self, *names: str) -> None:
        """Starts new instances, and waits until all are ready."""
        started = [self.add(name) for name in names]
        for instance in started:
            eventually(instance.assert_ready, timeout_s=60)

    def close(self) -> None:
        """Ends every instance."""
        for instance in self.instances.values():
            instance.close()

    @property
    def _stores(self) -> Path:
        return self._directory / "stores.yaml"

    def _create_topic(self, name: str, settings: Mapping[str, str]) -> None:
        create_topic(self.bootstrap, name, self.partitions, {"cleanup.policy": "compact", **settings})

    @property
    def _instance_settings(self) -> Mapping[str, object]:
        return {
            "kafka_bootstrap": self.bootstrap,
            "group_id": self.topic,
            "stores": self._stores,
            "replicas": REPLICAS,
            "session_timeout_ms": SESSION_TIMEOUT_MS,
            "membership_interval_ms": 100,
            "replace_after_s": 0,
            "drain_s": DRAIN_S,
            **self._settings,
        }


@contextmanager
def query_cluster(
    bootstrap: str,
    directory: Path,
    topic: Mapping[str, str] | None = None,
    message: str = MESSAGE,
    partitions: int = PARTITIONS,
    **settings: object,
) -> Iterator[QueryCluster]:
    """Yields a cluster without instances, which end with it; its store has rows of the message."""
    directory.mkdir(parents=True, exist_ok=True)
    cluster = QueryCluster(bootstrap, directory, topic or {}, message, partitions, **settings)
    try:
        yield cluster
    finally:
        cluster.close()
