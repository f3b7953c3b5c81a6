"""Readers of orders at all query instances, which accept no state older than the newest they have seen."""

import json
import random
import threading
import time
from collections.abc import Iterator, Sequence
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
RETRY = {"maxAttempts": 5, "initialBackoff": "0.1s", "maxBackoff": "1s", "backoffMultiplier": 2}
"""The service config of a client of several instances: a call that ended with UNAVAILABLE is tried again."""


class OrderReader:
    """Reads one order after the other, each at least as new as it was before.

    It reads through the first address that can be reached; with `retry`, a call that an instance took along when it
    died is tried again at the next.
    """

    def __init__(self, name: str, addresses: Sequence[str], order_ids: Sequence[str], *, retry: bool = False) -> None:
        self.name = name
        self.reads = 0
        self.failures: list[str] = []
        self.backward: list[str] = []
        self._order_ids = order_ids
        self._chance = random.Random(name)
        self._seen: dict[str, Position] = {}
        policy = {"retryPolicy": RETRY | {"retryableStatusCodes": ["UNAVAILABLE"]}} if retry else {}
        config = json.dumps({"methodConfig": [{"name": [{}], **policy}]})
        # The native server takes no :authority of two ports, the default for a list of addresses.
        options = [("grpc.service_config", config), ("grpc.default_authority", "query-service")]
        self._channel = grpc.insecure_channel(f"ipv4:{','.join(addresses)}", options)
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
def reading_orders(
    addresses: Sequence[str], order_ids: Sequence[str], *, retry: bool = False
) -> Iterator[list[OrderReader]]:
    """Reads through each instance on a thread of its own in the block; with `retry`, at another when it dies."""
    readers = [
        OrderReader(address, [address, *(set(addresses) - {address} if retry else ())], order_ids, retry=retry)
        for address in addresses
    ]
    with ExitStack() as threads:
        for reader in readers:
            threads.enter_context(in_background(reader.read_until))
        yield readers
