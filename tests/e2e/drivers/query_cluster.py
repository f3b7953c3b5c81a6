"""Instances of the query service that share one keyed topic."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]  # not in its __all__

from drivers.query_instance import QueryInstance
from drivers.waiting import eventually
from local_stack.ports import free_ports

STORE = "states"
MESSAGE = "statecast.orders.v1.Order"
PARTITIONS = 4
REPLICAS = 2
SESSION_TIMEOUT_MS = 3000
DRAIN_S = 30


class QueryCluster:
    """A keyed topic of four partitions, and those who serve it as the store `states` with two replicas."""

    def __init__(self, bootstrap: str, directory: Path, topic: Mapping[str, str], **settings: object) -> None:
        """Makes the topic, with settings of its own; `settings` go to every instance on top of those of the cluster."""
        self.bootstrap = bootstrap
        self.topic = f"{STORE}-{uuid4().hex[:8]}"
        self.instances: dict[str, QueryInstance] = {}
        self._directory = directory
        self._settings = settings
        self._make_topic(self.topic, topic)
        self._stores.write_text(f"stores:\n  - {{name: {STORE}, topic: {self.topic}, message: {MESSAGE}}}\n")

    def add_plain_store(self, name: str, message: str) -> None:
        """Makes a topic, which instances that are started from now on serve as it is, under its own name."""
        self._make_topic(name, {})
        with self._stores.open("a") as stores:
            stores.write(f"  - {{name: {name}, topic: {name}, message: {message}, format: plain}}\n")

    def add(self, name: str) -> QueryInstance:
        """Starts a new instance and returns it before it is ready."""
        instance = QueryInstance(name, self._environment(name), self._directory / f"{name}.log")
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

    def _make_topic(self, name: str, settings: Mapping[str, str]) -> None:
        config = {"cleanup.policy": "compact", **settings}
        new = NewTopic(name, num_partitions=PARTITIONS, replication_factor=1, config=config)
        admin = AdminClient({"bootstrap.servers": self.bootstrap})
        admin.create_topics([new])[name].result()

    def _environment(self, name: str) -> dict[str, str]:
        port, shard_port, metrics_port = free_ports(3)
        values: dict[str, object] = {
            "kafka_bootstrap": self.bootstrap,
            "group_id": self.topic,
            "instance": name,
            "port": port,
            "shard_port": shard_port,
            "metrics_port": metrics_port,
            "data_directory": self._directory / name,
            "stores": self._stores,
            "replicas": REPLICAS,
            "session_timeout_ms": SESSION_TIMEOUT_MS,
            "membership_interval_ms": 100,
            "drain_s": DRAIN_S,
            **self._settings,
        }
        return {f"QUERY_SERVICE_{key.upper()}": str(value) for key, value in values.items()}


@contextmanager
def query_cluster(
    bootstrap: str, directory: Path, topic: Mapping[str, str] | None = None, **settings: object
) -> Iterator[QueryCluster]:
    """A cluster without instances, which end with it."""
    directory.mkdir(parents=True, exist_ok=True)
    cluster = QueryCluster(bootstrap, directory, topic or {}, **settings)
    try:
        yield cluster
    finally:
        cluster.close()
