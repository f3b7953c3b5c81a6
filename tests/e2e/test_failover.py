"""Reads do not stop when the owner of a key dies."""

import threading
from contextlib import AbstractContextManager

import grpc
import pytest
from drivers.gateway_client import GatewayClient, client_of
from drivers.lookups import Lookups
from drivers.order_source import OrderSource

from local_stack.running_stack import RunningStack
from statecast.orders.v1.order_pb2 import OrderStatus
from statecast.partitioning import PARTITIONERS, partition_of
from statecast.state.v1.state_pb2 import StateKey
from testkit.background import in_background
from testkit.waiting import eventually

ALICE = "customer-0001"
READ_EVERY_S = 0.01


class Reader:
    """Reads one order all the time, through one instance, and keeps the answers and the failures."""

    def __init__(self, lookups: Lookups, order_id: str) -> None:
        self._lookups, self._order_id = lookups, order_id
        self.offsets: list[int] = []
        self.answered_by: list[str] = []
        self.failures: list[grpc.RpcError] = []

    def reading(self) -> AbstractContextManager[None]:
        """Reads on a thread of its own while the context is open."""
        return in_background(self._read_until)

    def _read_until(self, done: threading.Event) -> None:
        while not done.wait(READ_EVERY_S):
            try:
                answer = self._lookups.order(self._order_id)
            except grpc.RpcError as failure:
                self.failures.append(failure)
                continue
            self.offsets.append(answer.state.position.offset)
            self.answered_by.append(answer.freshness.answered_by)


def owner_of(lookups: Lookups, order_id: str) -> str:
    """The instance that answers for the order."""
    return lookups.order(order_id).freshness.answered_by


def test_a_lookup_that_lands_on_the_wrong_instance_is_forwarded(
    source: OrderSource, all_lookups: dict[str, Lookups]
) -> None:
    order_id = source.place(ALICE, {"item-a": 1}).order_id

    def every_instance_answers_the_same() -> None:
        try:
            answers = {name: lookups.order(order_id) for name, lookups in all_lookups.items()}
        except grpc.RpcError as failure:
            raise AssertionError(failure) from failure
        owners = {answer.freshness.answered_by for answer in answers.values()}
        assert len(owners) == 1
        forwarded = {name for name, answer in answers.items() if answer.freshness.forwarded}
        assert forwarded == set(answers) - owners
        assert len({answer.state.SerializeToString() for answer in answers.values()}) == 1

    eventually(every_instance_answers_the_same)


def test_a_proxy_that_reads_the_shard_map_sends_each_call_to_its_owner(
    stack: RunningStack, source: OrderSource, all_lookups: dict[str, Lookups]
) -> None:
    orders = [source.place(ALICE, {"item-a": 1}).order_id for _ in range(8)]
    for order_id in orders:
        next(iter(all_lookups.values())).wait_for("orders-by-key", StateKey(group=order_id))
    shard_map = client_of(stack, "operator").get("/v1/shards").json()
    [store] = [each for each in shard_map["stores"] if each["store"] == "orders-by-key"]
    owners = {
        shard["partition"]: replica["address"]
        for shard in shard_map["shards"]
        for replica in shard["replicas"]
        if shard["store"] == "orders-by-key" and replica["rank"] == 1
    }
    by_address = {lookups.address: lookups for lookups in all_lookups.values()}
    hash_group = PARTITIONERS[store["partitioner"].removeprefix("PARTITIONER_").lower()]

    answers = [by_address[owners[partition_of(each, store["partitions"], hash_group)]].order(each) for each in orders]
    assert {partition_of(each, store["partitions"], hash_group) for each in orders} <= owners.keys()
    assert [answer.freshness.forwarded for answer in answers] == [False] * len(orders)


@pytest.mark.timeout(240)
def test_the_owner_is_killed_and_reads_go_on(
    stack: RunningStack, source: OrderSource, all_lookups: dict[str, Lookups], alice: GatewayClient
) -> None:
    order_id = source.place(ALICE, {"item-a": 1}).order_id
    with alice.watch(order_id) as watch:
        watch.until_status(order_id, "Placed")
    owner = owner_of(next(iter(all_lookups.values())), order_id)
    survivor_name, survivor = next(each for each in all_lookups.items() if each[0] != owner)

    reader = Reader(survivor, order_id)
    with reader.reading():
        eventually(lambda: _assert_answers(reader, owner))
        stack.kill(owner)
        eventually(lambda: _assert_answers(reader, survivor_name))
        source.advance(order_id, OrderStatus.ORDER_STATUS_PAID)
        with alice.watch(order_id) as watch:
            watch.until_status(order_id, "Paid")
        stack.wait_ready(owner)
        eventually(lambda: _assert_answers(reader, owner), timeout_s=60)

    assert reader.failures == []
    assert reader.offsets == sorted(reader.offsets)


def _assert_answers(reader: Reader, instance: str) -> None:
    assert reader.answered_by[-1:] == [instance]
