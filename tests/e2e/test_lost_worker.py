"""A worker of a Spark cluster is lost while another has come: the processor goes on there, and reads never stop."""

import time
from collections.abc import Callable, Iterator

import pytest
from drivers.gateway_client import client_of, gateway_of
from drivers.lookups import Lookups
from drivers.order_flow import making_changes, until_more
from drivers.order_readers import reading_orders
from drivers.order_source import OrderChanges, OrderSource
from drivers.push_watchers import PushWatcher, PushWatchers
from drivers.shared_stack import shared_stack
from drivers.topic_readers import read_history
from drivers.update_assertions import assert_all_told, assert_told_once

from local_stack.running_stack import RunningStack
from statecast.state.v1.state_pb2 import StateKey
from testkit.ports import free_port
from testkit.stream_processor.cluster import Cluster
from testkit.waiting import eventually, wait_until

PROCESSOR = "stream-processor"
SLOTS = 6
"""The task slots of each worker: the pipelines of the orders need two workers, and hold all that two have."""
CHANGES = 20_000
"""More than are made."""
CHANGES_PER_S = 50
CHANGES_BETWEEN = 300


@pytest.fixture
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A master and two workers."""
    spark = Cluster(tmp_path_factory.mktemp("cluster"), free_port())
    try:
        spark.start_master()
        for name in ("worker-1", "worker-2"):
            spark.start_worker(name, SLOTS)
        yield spark
    finally:
        spark.close()


@pytest.fixture
def stack_on_cluster(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningStack]:
    """Runs a stack with a processor that has its tasks on the cluster."""
    with pytest.MonkeyPatch.context() as environment:
        for name, value in {**cluster.client_environment(), "STREAM_PROCESSOR_MASTER": cluster.master}.items():
            environment.setenv(name, value)
        with shared_stack(tmp_path_factory.mktemp("stack"), rate=20, checkpoint_interval="10s") as running:
            yield running


@pytest.mark.long
@pytest.mark.timeout(900)
def test_a_lost_worker_costs_no_restart_and_no_read(
    stack_on_cluster: RunningStack, cluster: Cluster, record_testsuite_property: Callable[[str, object], None]
) -> None:
    stack, changes = stack_on_cluster, OrderChanges(OrderSource(stack_on_cluster.file.kafka.bootstrap), 1, CHANGES)
    addresses = [query.address for query in stack.file.queries]
    watchers = [PushWatcher(changes.busy, [], 0)]
    lookups = Lookups(addresses[0])
    for _ in changes.busy:
        changes.make_next()
    for order_id in changes.busy:
        lookups.wait_for("orders-by-key", StateKey(group=order_id))
    with (
        PushWatchers(gateway_of(stack), client_of(stack, "operator"), watchers) as watching,
        reading_orders(addresses, changes.busy) as readers,
    ):
        eventually(watching.assert_begun, timeout_s=60)
        with making_changes(changes, CHANGES_PER_S):
            until_more(changes, readers, CHANGES_BETWEEN)
            cluster.start_worker("worker-3", SLOTS)
            wait_until(lambda: bool(cluster.executors("worker-3")), "the new worker has an executor", timeout_s=60)
            restarts = stack.entry(PROCESSOR).restarts
            killed_at = time.monotonic()
            cluster.kill_worker("worker-1")
            first = OrderSource(stack.file.kafka.bootstrap).place("customer-0001", {"item-a": 1}).order_id
            lookups.wait_for("orders-by-key", StateKey(group=first))
            record_testsuite_property("changes_visible_after_s", round(time.monotonic() - killed_at, 1))
            until_more(changes, readers, CHANGES_BETWEEN)
        history = read_history(stack.file.kafka.bootstrap, changes.prefix)
        eventually(lambda: assert_all_told(watching, history), timeout_s=120)
    lookups.close()

    assert stack.entry(PROCESSOR).restarts == restarts
    assert [failure for reader in readers for failure in reader.failures] == []
    assert [step for reader in readers for step in reader.backward] == []
    for order_id, updates in watchers[0].updates.items():
        assert_told_once(order_id, updates, history)
