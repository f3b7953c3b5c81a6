"""The real stack that the end-to-end tests run on, and its clients."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from drivers.gateway_client import Gateway, GatewayClient, client_of, gateway_of
from drivers.loaded_cluster import LoadedCluster, loaded_cluster
from drivers.lookups import Lookups
from drivers.order_source import OrderSource
from drivers.topic_readers import DeadLetters

from local_stack.domains import FIRST, domain_names
from local_stack.running_stack import RunningStack, running_stack
from local_stack.settings import Settings
from testkit.broker import BrokerProcess, running_broker
from testkit.waiting import scaled

OTHER_DOMAINS = ",".join(name for name in domain_names() if name != FIRST)
EDGES_PATIENCE_S = {"WS_EDGE_STALL_TIMEOUT_S": 20, "WS_EDGE_PING_INTERVAL_S": 25, "WS_EDGE_PING_TIMEOUT_S": 20}
"""What the edges allow their clients, by default; a slow machine needs it stretched like all other time-outs."""


@pytest.fixture(scope="session")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningStack]:
    """The stack that most stories share; whoever kills a part waits until it is ready again, and may do so often."""
    with _patient_stack(_shared(tmp_path_factory.mktemp("stack"))) as running:
        yield running


@pytest.fixture(scope="session")
def domains_stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningStack]:
    """The stack of all domains but the orders; the same holds for whoever kills a part of it."""
    settings = _shared(tmp_path_factory.mktemp("domains-stack"), OTHER_DOMAINS, 40, "30s")
    with _patient_stack(settings) as running:
        yield running


def _shared(directory: Path, domain: str = FIRST, rate: float = 20, checkpoint_interval: str = "") -> Settings:
    return Settings(
        directory=directory,
        domain=domain,
        rate=rate,
        checkpoint_interval=checkpoint_interval,
        start_timeout_s=scaled(180),
        restart_max_s=0.5,
        restart_limit=1000,
    )


@contextmanager
def _patient_stack(settings: Settings) -> Iterator[RunningStack]:
    with ExitStack() as ends:
        with pytest.MonkeyPatch.context() as environment:
            for name, seconds in EDGES_PATIENCE_S.items():
                environment.setenv(name, str(scaled(seconds)))
            running = ends.enter_context(running_stack(settings))
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
    """A source whose changes the test decides."""
    return OrderSource(stack.file.kafka.bootstrap)


@pytest.fixture(scope="session")
def dead_letters(stack: RunningStack) -> DeadLetters:
    """What the pipelines set aside."""
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
    """Three instances of the query service under steady load; when the story ends, what must always hold is checked."""
    with loaded_cluster(query_broker.bootstrap, tmp_path) as cluster:
        yield cluster
