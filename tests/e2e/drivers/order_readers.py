"""Readers of orders at all query instances, who take nothing older than what they have seen."""

import random
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import grpc

from statecast.query.v1.query_pb2 import Bounds
from statecast.query.v1.query_service_pb2 import GetStateRequest
from statecast.query.v1.query_service_pb2_grpc import QueryServiceStub
from statecast.state.v1.state_pb2 import Position, StateKey
from testkit.background import in_background
from testkit.waiting import scaled

READ_EVERY_S = 0.02
READ_S = 5.0


class OrderReader:
    """Reads one order after the other through one instance, each at least as new as it was before."""

    def __init__(self, name: str, address: str, order_ids: Sequence[str]) -> None:
        self.name = name
        self.reads = 0
        self.failures: list[str] = []
        self.backward: list[str] = []
        self._order_ids = order_ids
        self._chance = random.Random(name)
        self._seen: dict[str, Position] = {}
        self._channel = grpc.insecure_channel(address)
        self._stub: Any = QueryServiceStub(self._channel)

    def read_until(self, done: threading.Event) -> None:
        """Goes on until `done` is set."""
        while not done.wait(READ_EVERY_S):
            self._read(self._chance.choice(self._order_ids))
        self._channel.close()

    def _read(self, order_id: str) -> None:
        before = self._seen.get(order_id)
        bounds = None if before is None else Bounds(at_least=before)
        request = GetStateRequest(store="orders-by-key", key=StateKey(group=order_id), bounds=bounds)
        began = time.monotonic()
        try:
            position = self._stub.GetState(request, timeout=scaled(READ_S)).state.position
        except grpc.RpcError as failure:
            if failure.code() != grpc.StatusCode.NOT_FOUND:  # it may have been deleted
                took_s = time.monotonic() - began
                self.failures.append(f"{self.name}: {order_id} after {took_s:.1f} s: {failure.details()}")
            return
        self.reads += 1
        if before is not None and (position.epoch, position.offset) < (before.epoch, before.offset):
            self.backward.append(f"{self.name}: {order_id} went from {before.offset} back to {position.offset}")
        self._seen[order_id] = position


@contextmanager
def reading_orders(addresses: Mapping[str, str], order_ids: Sequence[str]) -> Iterator[list[OrderReader]]:
    """Reads through each instance, given by name and address, on a thread of its own while the block runs."""
    readers = [OrderReader(name, address, order_ids) for name, address in addresses.items()]
    with ExitStack() as threads:
        for reader in readers:
            threads.enter_context(in_background(reader.read_until))
        yield readers
