"""What the tests of all services share: one real Kafka broker per run."""

import time
from collections.abc import Callable, Iterator
from uuid import uuid4

import pytest
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]  # not in its __all__

from local_stack import child_process
from local_stack.broker import Broker
from local_stack.ports import free_ports

CreateTopic = Callable[..., str]


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The bootstrap address of a real broker that lives as long as the test run."""
    port, controller_port = free_ports(2)
    broker = Broker(tmp_path_factory.mktemp("kafka"), port, controller_port)
    broker.prepare()
    log = broker.directory / "broker.log"
    process = child_process.start(broker.command(), log)
    try:
        deadline = time.monotonic() + 60
        while not broker.answers():
            assert process.poll() is None, f"the broker ended: {log.read_text()}"
            assert time.monotonic() < deadline, f"the broker does not answer: {log.read_text()}"
        yield broker.bootstrap
    finally:
        child_process.stop(process.pid)
        process.wait()


@pytest.fixture
def create_topic(kafka: str) -> CreateTopic:
    """Creates a topic with a unique name and returns the name: `create_topic("orders", partitions=4, **config)`."""
    admin = AdminClient({"bootstrap.servers": kafka})

    def create(name: str, partitions: int = 4, **config: str) -> str:
        topic = f"{name}-{uuid4().hex[:8]}"
        settings = {key.replace("_", "."): value for key, value in config.items()}
        new = NewTopic(topic, num_partitions=partitions, replication_factor=1, config=settings)
        for result in admin.create_topics([new]).values():
            result.result()
        _wait_until_known(admin, topic, partitions)
        return topic

    return create


def _wait_until_known(admin: AdminClient, topic: str, partitions: int) -> None:
    """The broker answers that a topic is made before it tells everybody of it."""
    deadline = time.monotonic() + 30
    while len(admin.list_topics(topic, timeout=10).topics[topic].partitions) != partitions:
        assert time.monotonic() < deadline, f"the broker does not tell of {topic}"
        time.sleep(0.01)
