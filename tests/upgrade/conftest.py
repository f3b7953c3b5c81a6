"""A stack in which each process runs HEAD or the last release, under load, and the table of its steps."""

from collections.abc import Iterator

import pytest
from confluent_kafka import Producer
from drivers.gateway_client import client_of, gateway_of
from drivers.order_load import OrderLoad
from drivers.order_source import PRODUCER_SETTINGS, OrderSource
from drivers.shared_stack import shared_stack
from mixed_versions.upgrade import Upgrade
from mixed_versions.versions import Versions

from local_stack.running_stack import RunningStack
from testkit.waiting import scaled


class KeepingProducer:
    """A producer that keeps the values that it has sent."""

    def __init__(self, bootstrap: str) -> None:
        self._producer = Producer({"bootstrap.servers": bootstrap, **PRODUCER_SETTINGS})
        self.values: list[bytes] = []

    def produce(self, topic: str, value: bytes, key: bytes) -> None:
        """Takes a record to send."""
        self._producer.produce(topic, value=value, key=key)
        self.values.append(value)

    def flush(self, timeout: float) -> int:
        """Returns how many records Kafka has not acknowledged."""
        return self._producer.flush(timeout)


@pytest.fixture(scope="module")
def versions(tmp_path_factory: pytest.TempPathFactory) -> Versions:
    """The last release of each part."""
    return Versions(tmp_path_factory.mktemp("versions"))


@pytest.fixture(scope="module")
def stack(versions: Versions, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningStack]:
    """A stack of the last releases, which have time to stop."""
    settings = {"programs": versions.programs, "kong_file": versions.kong_file, "stop_grace_s": scaled(60)}
    directory = tmp_path_factory.mktemp("stack")
    with shared_stack(directory, rate=2, orders=50, checkpoint_interval="5s", **settings) as running:
        yield running


@pytest.fixture
def upgrade(stack: RunningStack, versions: Versions, figures: list[str]) -> Upgrade:
    """Steps from one version to another, under load."""
    producer = KeepingProducer(stack.file.kafka.bootstrap)
    source = OrderSource(stack.file.kafka.bootstrap, producer=producer)
    load = OrderLoad(gateway_of(stack), client_of(stack, "operator"), source, producer.values)
    return Upgrade(stack, versions, load, figures)
