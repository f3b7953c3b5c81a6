"""Each of three brokers dies, alone or with its zone, and each falls silent: reads go on, nobody misses a change or
is told one twice.

A topic has a replica on each broker, and two must have a record before it counts. How many brokers go, the coordinator
of the query service's group first, is THREE_BROKERS_VICTIMS. It is told by `make e2e-brokers`, with all of them.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import pytest
from drivers.gateway_client import client_of, gateway_of
from drivers.lookups import Lookups
from drivers.order_flow import making_changes, until_more
from drivers.order_readers import reading_orders
from drivers.order_source import OrderChanges, OrderSource
from drivers.push_watchers import PushWatcher, PushWatchers
from drivers.topic_readers import read_history
from drivers.update_assertions import assert_all_told, assert_range_told_once, assert_told_once

from local_stack.running_stack import RunningStack, running_stack
from local_stack.settings import Settings
from statecast.state.v1.state_pb2 import StateKey
from testkit.broker import BrokerCluster, BrokerProcess, running_brokers
from testkit.waiting import eventually, scaled

VICTIMS = int(os.environ.get("THREE_BROKERS_VICTIMS", "1"))

CHANGES = 20_000
"""More than are made."""
CHANGES_PER_S = 100
CHANGES_DURING_OUTAGE = 300
WATCHERS = 4
GROUP = "query-service"
BROKERS = 3

Way = Callable[[RunningStack, BrokerProcess], AbstractContextManager[None]]


@pytest.fixture(scope="module")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerCluster]:
    with running_brokers(tmp_path_factory.mktemp("brokers"), BROKERS) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def stack_on_brokers(brokers: BrokerCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningStack]:
    settings = Settings(
        directory=tmp_path_factory.mktemp("stack"),
        kafka_bootstrap=brokers.bootstrap,
        rate=20,
        start_timeout_s=scaled(240),
        restart_max_s=0.5,
        restart_limit=1000,
    )
    with running_stack(settings) as running:
        yield running


@contextmanager
def killed(_: RunningStack, broker: BrokerProcess) -> Iterator[None]:
    broker.kill()
    yield
    broker.start()


@contextmanager
def silent(_: RunningStack, broker: BrokerProcess) -> Iterator[None]:
    broker.pause()
    yield
    broker.resume()


@contextmanager
def killed_with_its_zone(stack: RunningStack, broker: BrokerProcess) -> Iterator[None]:
    """Kills a broker with its zone: one query instance and one edge die with it."""
    zone = [each[broker.node % len(each)].name for each in (stack.file.queries, stack.file.edges)]
    for name in zone:
        stack.kill(name, hold=True)
    with killed(stack, broker):
        yield
    for name in zone:
        stack.start(name)
    for name in zone:
        stack.wait_ready(name, scaled(60))


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize(("way", "seed"), [(killed, 1), (silent, 2), (killed_with_its_zone, 3)])
def test_brokers_go_one_after_the_other(
    stack_on_brokers: RunningStack, brokers: BrokerCluster, way: Way, seed: int
) -> None:
    stack, source = stack_on_brokers, OrderSource(brokers.bootstrap)
    changes = OrderChanges(source, seed, CHANGES)
    watchers = [
        PushWatcher(changes.busy[number::WATCHERS], changes.customers[number::WATCHERS], 0)
        for number in range(WATCHERS)
    ]
    addresses = [query.address for query in stack.file.queries]
    for _ in changes.busy:
        changes.make_next()
    lookups = Lookups(addresses[0])
    for order_id in changes.busy:
        lookups.wait_for("orders-by-key", StateKey(group=order_id))
    lookups.close()
    with (
        PushWatchers(gateway_of(stack), client_of(stack, "operator"), watchers) as watching,
        reading_orders(addresses, changes.busy, retry=way is killed_with_its_zone) as readers,
    ):
        eventually(watching.assert_begun, timeout_s=60)
        with making_changes(changes, CHANGES_PER_S):
            coordinator = brokers.coordinator(GROUP)
            for node in sorted(brokers.brokers, key=lambda node: node != coordinator)[:VICTIMS]:
                with way(stack, brokers.brokers[node]):
                    until_more(changes, readers, CHANGES_DURING_OUTAGE)
                eventually(lambda: _assert_in_sync(brokers), timeout_s=60)
                until_more(changes, readers, CHANGES_DURING_OUTAGE)
        history = read_history(brokers.bootstrap, changes.prefix)
        eventually(lambda: assert_all_told(watching, history), timeout_s=120)

    assert sum(map(len, history.changes.values())) == changes.made_count
    assert [failure for reader in readers for failure in reader.failures] == []
    assert [step for reader in readers for step in reader.backward] == []
    for watcher in watchers:
        for order_id, updates in watcher.updates.items():
            assert_told_once(order_id, updates, history)
        for customer, range_updates in watcher.ranges.items():
            assert_range_told_once(customer, range_updates, history)


def _assert_in_sync(brokers: BrokerCluster) -> None:
    missing = brokers.out_of_sync()
    assert not missing, f"not in sync yet: {missing[:5]}"
