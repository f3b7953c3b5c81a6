"""Lookups over gRPC, straight at one instance of the query service or at its own stores."""

from collections.abc import Iterable
from itertools import islice
from typing import Any

import grpc
from google.protobuf.duration_pb2 import Duration

from drivers.pipeline_models import State
from statecast.orders.v1.order_pb2 import Order
from statecast.query.v1.query_pb2 import KeyQuery
from statecast.query.v1.query_service_pb2 import (
    BatchGetStatesRequest,
    GetStateRequest,
    GetStateResponse,
    ScanStatesRequest,
    ScanStatesResponse,
)
from statecast.query.v1.query_service_pb2_grpc import QueryServiceStub
from statecast.shard.v1.shard_service_pb2 import BatchGetStatesRequest as ShardBatchRequest
from statecast.shard.v1.shard_service_pb2 import ScanStatesRequest as ShardScanRequest
from statecast.shard.v1.shard_service_pb2_grpc import ShardServiceStub
from statecast.state.v1.state_pb2 import StateKey
from testkit.waiting import scaled

PAGE_SIZE = 1000
BATCH = 500


class Lookups:
    """One open channel to one instance."""

    def __init__(self, address: str) -> None:
        self.address = address
        self._channel = grpc.insecure_channel(address)
        self._stub: Any = QueryServiceStub(self._channel)

    def get(self, store: str, key: StateKey) -> GetStateResponse:
        """Returns the value of a key; grpc.RpcError as the service answers."""
        response: GetStateResponse = self._stub.GetState(GetStateRequest(store=store, key=key), timeout=scaled(5))
        return response

    def wait_for(self, store: str, key: StateKey) -> None:
        """Returns as soon as the key has a value; grpc.RpcError when it has none within the time-out."""
        query = KeyQuery(key=key)
        while True:
            request = BatchGetStatesRequest(store=store, keys=[query], max_wait=Duration(seconds=5))
            for result in self._stub.BatchGetStates(request, timeout=scaled(10)).results:
                if result.HasField("state"):
                    return
                query.after.CopyFrom(result.absence.position)

    def order(self, order_id: str) -> GetStateResponse:
        """Returns the value of an order."""
        return self.get("orders-by-key", StateKey(group=order_id))

    def scan(self, store: str, group: str) -> list[tuple[StateKey, Order]]:
        """Returns all members of a group in the order of the store."""
        members: list[tuple[StateKey, Order]] = []
        token = ""
        while True:
            request = ScanStatesRequest(store=store, group=group, page_size=PAGE_SIZE, page_token=token)
            page: ScanStatesResponse = self._stub.ScanStates(request, timeout=scaled(10))
            members += [(state.key, Order.FromString(state.payload)) for state in page.states]
            token = page.next_page_token
            if not token:
                return members

    def close(self) -> None:
        self._channel.close()


class InstanceStore:
    """The stores of one instance, by the address of its shard service."""

    def __init__(self, address: str) -> None:
        self._channel = grpc.insecure_channel(address)
        self._stub: Any = ShardServiceStub(self._channel)

    def values(self, store: str, groups: Iterable[str]) -> State:
        """Returns the values of a store with one value per group; absent groups are left out."""
        rows: State = {}
        pending = iter(sorted(groups))
        while chunk := list(islice(pending, BATCH)):
            keys = [KeyQuery(key=StateKey(group=group)) for group in chunk]
            request = ShardBatchRequest(query=BatchGetStatesRequest(store=store, keys=keys))
            for result in self._stub.BatchGetStates(request, timeout=scaled(10)).answer.results:
                assert not result.HasField("error"), f"{chunk[result.index]}: {result.error}"
                if result.HasField("state"):
                    rows[(chunk[result.index], "", "")] = Order.FromString(result.state.payload)
        return rows

    def members(self, store: str, groups: Iterable[str]) -> State:
        """Returns the members of the groups of a store with many values per group."""
        return {key: order for group in sorted(groups) for key, order in self._group(store, group).items()}

    def _group(self, store: str, group: str) -> State:
        rows: State = {}
        token = ""
        while True:
            query = ScanStatesRequest(store=store, group=group, page_size=BATCH, page_token=token)
            page = self._stub.ScanStates(ShardScanRequest(query=query), timeout=scaled(10)).answer
            for state in page.states:
                rows[(state.key.group, state.key.sort, state.key.member)] = Order.FromString(state.payload)
            token = page.next_page_token
            if not token:
                return rows

    def close(self) -> None:
        """Closes the channel."""
        self._channel.close()
