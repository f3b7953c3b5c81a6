"""Parts that the tests of all distributions share: one real Kafka broker per run, and markers for tests that need much.

`pytest -m "not kafka and not spark and not stack"` is the fast loop.
"""

import signal
from collections.abc import Callable, Iterator, Sequence
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, settings

from statecast_service.kafka import KafkaSettings
from testkit import topics
from testkit.broker import running_broker
from testkit.waiting import scaled

CreateTopic = Callable[..., str]

COSTLY_FIXTURES = {"kafka": "kafka", "spark": "spark", "stack": "stack", "gateway": "stack", "query_broker": "stack"}
"""The marker of each fixture that starts something large."""

STARTS_LARGE_PROCESSES = frozenset(
    {"Broker", "BrokerProcess", "browser_client", "chromium", "running_broker", "running_brokers", "running_connect"}
    | {"running_envoy", "running_gateway", "running_postgres", "running_stack", "secured_broker", "start_stack"}
)
"""Names that a test module imports to start a broker, a browser, a gateway or a stack of its own: marked `stack`."""


MARKERS = (
    "kafka: uses the real broker that the fixture `kafka` starts",
    "spark: uses the real Spark session that the fixture `spark` starts",
    "stack: starts other large processes: a broker, a Spark cluster, a gateway, a browser, Maven or the local stack",
    "long: takes minutes, and only `make long` runs it",
)


FIGURES = pytest.StashKey[list[str]]()


def pytest_configure(config: pytest.Config) -> None:
    """Registers the markers, and takes the clock out of property tests: a busy machine makes none of them fail."""
    give_children_default_signals()
    for marker in MARKERS:
        config.addinivalue_line("markers", marker)
    settings.register_profile("statecast", deadline=None, suppress_health_check=[HealthCheck.too_slow])
    settings.load_profile("statecast")
    config.stash[FIGURES] = []


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Prints the figures of the run, where it has any."""
    if figures := config.stash[FIGURES]:
        terminalreporter.section("figures")
        for line in figures:
            terminalreporter.write_line(line)


def give_children_default_signals() -> None:
    """Makes each process that a test starts heed the signals that this one was started to ignore, and still ignores.

    A shell starts its background jobs with SIGINT and SIGQUIT ignored (`make test &`), and each process that they start
    inherits it. A process's own handler is not inherited by the processes that it starts. SIGHUP stays ignored in all
    of them, for nohup.
    """
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGTERM):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, lambda *_: None)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: Sequence[pytest.Item]) -> None:
    """Marks each test by the large processes that it uses, itself or through fixtures; `-m` can select by them.

    The time that each test may take is stretched as its other time-outs are.
    """
    for item in items:
        limit = item.get_closest_marker("timeout")
        limit_s = limit.args[0] if limit else float(config.getini("timeout") or 0)
        item.add_marker(pytest.mark.timeout(scaled(limit_s)), append=False)
        fixtures = getattr(item, "fixturenames", ())
        markers = {marker for name, marker in COSTLY_FIXTURES.items() if name in fixtures}
        module = getattr(item, "module", None)
        if module is not None and STARTS_LARGE_PROCESSES & vars(module).keys():
            markers.add("stack")
        for marker in sorted(markers):
            item.add_marker(marker)


@pytest.fixture(scope="session")
def figures(pytestconfig: pytest.Config) -> list[str]:
    """Lines that are printed at the end of the run: how long things took, how large they are, a table."""
    return pytestconfig.stash[FIGURES]


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The bootstrap address of a real broker that lives as long as the test run."""
    with running_broker(tmp_path_factory.mktemp("kafka")) as broker:
        yield broker.bootstrap


@pytest.fixture
def brokers(kafka: str) -> KafkaSettings:
    """How a client reaches that broker."""
    return KafkaSettings(kafka_bootstrap=kafka)


@pytest.fixture
def create_topic(kafka: str) -> CreateTopic:
    """Creates a topic with a unique name and returns the name: `create_topic("orders", partitions=4, **config)`."""

    def create(name: str, partitions: int = 4, **config: str) -> str:
        topic = f"{name}-{uuid4().hex[:8]}"
        topics.create_topic(kafka, topic, partitions, {key.replace("_", "."): value for key, value in config.items()})
        return topic

    return create
