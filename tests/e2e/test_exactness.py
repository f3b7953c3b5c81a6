"""After tens of thousands of changes and the violent death of each kind of service, all instances hold the truth."""

from collections.abc import Iterator
from functools import partial
from itertools import pairwise
from pathlib import Path

import pytest
from drivers.change_history import rows_after
from drivers.gateway_client import Frame, client_of, gateway_of, offset_of
from drivers.lookups import InstanceStore
from drivers.order_watchers import ORDERS_PER_SOCKET, OrderWatchers
from drivers.pipeline_models import STORES, State, expected
from drivers.topic_readers import count_changes, read_changes

from local_stack.running_stack import RunningStack, running_stack
from local_stack.settings import Settings
from statecast.orders.v1.order_pb2 import Order, OrderChange, OrderStatus
from testkit.waiting import eventually, scaled

CHANGES_BEFORE_THE_KILLS = 40_000
RATE = 1_200
WATCHED = [f"order-{number:06d}" for number in range(100, 20_000, 100)]
VICTIMS = ("cdc-simulator", "stream-processor", "query-1", "edge-1", "gateway", "query-2", "edge-2")


@pytest.fixture
def busy_stack(tmp_path: Path) -> Iterator[RunningStack]:
    """A stack of its own, with a busy source."""
    settings = Settings(
        directory=tmp_path / "stack",
        orders=2_000,
        rate=RATE,
        checkpoint_interval="10s",
        start_timeout_s=scaled(180),
    )
    with running_stack(settings) as running:
        yield running


@pytest.mark.long
@pytest.mark.timeout(2_400)
def test_every_instance_equals_the_model_and_no_subscriber_saw_state_go_backwards(busy_stack: RunningStack) -> None:
    bootstrap = busy_stack.file.kafka.bootstrap
    with OrderWatchers(gateway_of(busy_stack), client_of(busy_stack, "operator"), WATCHED) as watchers:
        eventually(lambda: _assert_published(bootstrap, CHANGES_BEFORE_THE_KILLS), timeout_s=400)
        for victim in VICTIMS:
            published = count_changes(bootstrap)
            busy_stack.kill(victim)
            busy_stack.wait_ready(victim, scaled(90))
            # Without the simulator nobody makes changes; all else may die, and they go on at once.
            patience_s = 20 if victim == "cdc-simulator" else 0
            eventually(partial(_assert_published, bootstrap, published + 1), patience_s)
        busy_stack.stop("cdc-simulator")
        changes = read_changes(bootstrap)
        truth = rows_after(changes)
        for query in busy_stack.file.queries:
            wait_until_it_holds(query.shard_address, truth, changes)
        eventually(lambda: _assert_shown(watchers, truth), timeout_s=60)

    sockets = len(WATCHED) / ORDERS_PER_SOCKET
    assert watchers.connects > sockets + 1, "no socket broke, so the kill of an edge proved nothing"
    for order_id, frames in watchers.frames.items():
        _assert_never_backwards(order_id, frames)


def wait_until_it_holds(shard_address: str, truth: list[Order], changes: list[OrderChange]) -> None:
    """Returns when the instance holds exactly the truth; AssertionError with the differences at the time-out."""
    eventually(lambda: _assert_holds(shard_address, truth, changes), timeout_s=600)


def _assert_published(bootstrap: str, count: int) -> None:
    assert count_changes(bootstrap) >= count


def _assert_holds(shard_address: str, truth: list[Order], changes: list[OrderChange]) -> None:
    store_of_instance = InstanceStore(shard_address)
    rows = [row for change in changes for row in (change.before, change.after) if row.order_id]
    try:
        for store, keys in STORES.items():
            groups = {key[0] for row in rows for key in keys(row)}
            read = store_of_instance.values if store == "orders-by-key" else store_of_instance.members
            _assert_same(f"{store} at {shard_address}", read(store, groups), expected(truth, keys))
    finally:
        store_of_instance.close()


def _assert_same(where: str, held: State, true: State) -> None:
    missing, surplus = true.keys() - held.keys(), held.keys() - true.keys()
    wrong = {key for key in true.keys() & held.keys() if true[key] != held[key]}
    differences = {"missing": missing, "surplus": surplus, "wrong": wrong}
    counts = {name: (len(keys), sorted(keys)[:3]) for name, keys in differences.items() if keys}
    assert counts == {}, f"{where}: {counts}"


def _assert_shown(watchers: OrderWatchers, truth: list[Order]) -> None:
    status = {order.order_id: OrderStatus.Name(order.status).removeprefix("ORDER_STATUS_").title() for order in truth}
    assert set(watchers.frames) == set(WATCHED)
    for order_id, frames in watchers.frames.items():
        allowed = {status[order_id]} if order_id in status else {"Deleted", "Unknown"}
        assert frames[-1]["data"]["status"] in allowed, f"{order_id}: {frames[-1]}, should be {allowed}"


def _assert_never_backwards(order_id: str, frames: list[Frame]) -> None:
    for older, newer in pairwise(frames):
        assert offset_of(older) < offset_of(newer), f"{order_id}: {newer} was shown after {older}"
        assert older.get("commit_time", "") <= newer.get("commit_time", "9"), f"{order_id}: {newer} after {older}"
