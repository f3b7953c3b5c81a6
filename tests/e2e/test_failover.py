"""Reads do not stop when the owner of a key dies."""

import os
import sys
import threading
from contextlib import AbstractContextManager
from pathlib import Path

import grpc
import pytest
from drivers.gateway_client import GatewayClient
from drivers.lookups import Lookups
from drivers.order_source import OrderSource

from local_stack.running_stack import RunningStack
from statecast.orders.v1.order_pb2 import OrderStatus
from statecast.state.v1.state_pb2 import StateKey
from testkit.background import in_background
from testkit.tutorial import DONE, run_script, script_of
from testkit.waiting import eventually

PROXY_PAGE = Path(__file__).parents[2] / "docs" / "start" / "proxy.md"
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
    """Returns the instance that answers for the order."""
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


def test_a_proxy_made_by_the_page_alone_sends_each_call_to_its_owner(
    stack: RunningStack, source: OrderSource, all_lookups: dict[str, Lookups], tmp_path: Path
) -> None:
    orders = [source.place(ALICE, {"item-a": 1}).order_id for _ in range(8)]
    lookups = next(iter(all_lookups.values()))
    for order_id in orders:
        lookups.wait_for("orders-by-key", StateKey(group=order_id))
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    stack_of_the_page = {"PATH": path, "STACK": str(stack.directory.root), "ORDERS": " ".join(orders)}
    said = run_script(script_of(PROXY_PAGE), tmp_path, {**os.environ, **stack_of_the_page})

    assert said.endswith(f"{DONE}\n"), said
    answers = [line for line in said.splitlines() if "forwarded: " in line]
    assert [line.partition(":")[0] for line in answers] == orders
    assert all(line.endswith("forwarded: False") for line in answers), said


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
