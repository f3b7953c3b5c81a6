"""The real stack that the end-to-end tests run on, and its clients."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from drivers.gateway_client import Gateway, GatewayClient, client_of, gateway_of
from drivers.loaded_cluster import LoadedCluster, loaded_cluster
from drivers.lookups import Lookups
from drivers.order_source import OrderSource
from drivers.shared_stack import shared_stack
from drivers.topic_readers import DeadLetters

from local_stack.running_stack import RunningStack
from testkit.broker import BrokerProcess, running_broker


@pytest.fixture(scope="session")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningStack]:
    """The stack that most stories share; a story may kill parts often, if it waits until each is ready again."""
    with shared_stack(tmp_path_factory.mktemp("stack"), rate=20) as running:
        yield running


@pytest.fixture(scope="session")
def gateway(stack: RunningStack) -> Gateway:
    """The shared stack's gateway."""
    return gateway_of(stack)


@pytest.fixture(scope="session")
def alice(stack: RunningStack) -> GatewayClient:
    """The phone of customer-0001."""
    return client_of(stack, "alice")


@pytest.fixture(scope="session")
def bob(stack: RunningStack) -> GatewayClient:
    """The phone of customer-0002."""
    return client_of(stack, "bob")


@pytest.fixture(scope="session")
def source(stack: RunningStack) -> OrderSource:
    """A source with changes that the test decides."""
    return OrderSource(stack.file.kafka.bootstrap)


@pytest.fixture(scope="session")
def dead_letters(stack: RunningStack) -> DeadLetters:
    """The records that the pipelines set aside."""
    return DeadLetters(stack.file.kafka.bootstrap)


@pytest.fixture
def all_lookups(stack: RunningStack) -> Iterator[dict[str, Lookups]]:
    """A channel to each query instance, by its name."""
    channels = {query.name: Lookups(query.address) for query in stack.file.queries}
    yield channels
    for channel in channels.values():
        channel.close()


@pytest.fixture
def lookups(all_lookups: dict[str, Lookups]) -> Lookups:
    """A channel to one query instance: any answers any key."""
    return next(iter(all_lookups.values()))


@pytest.fixture
def edge_url(stack: RunningStack) -> str:
    """The address of one edge behind the gateway."""
    return stack.file.edges[0].url


@pytest.fixture(scope="session")
def query_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """The broker of the stories about the query service alone."""
    with running_broker(tmp_path_factory.mktemp("query-broker")) as broker:
        yield broker


@pytest.fixture
def query(query_broker: BrokerProcess, tmp_path: Path) -> Iterator[LoadedCluster]:
    """Three instances of the query service under steady load; checks the invariants when the story ends."""
    with loaded_cluster(query_broker.bootstrap, tmp_path) as cluster:
        yield cluster
