"""What one instance itself holds, read from its shard service, which never forwards."""

from collections.abc import Iterable
from itertools import islice
from typing import Any

import grpc

from drivers.model import State
from drivers.waiting import scaled
from statecast.orders.v1.order_pb2 import Order
from statecast.query.v1.query_pb2 import KeyQuery
from statecast.query.v1.query_service_pb2 import BatchGetStatesRequest, ScanStatesRequest
from statecast.shard.v1.shard_service_pb2 import BatchGetStatesRequest as ShardBatchRequest
from statecast.shard.v1.shard_service_pb2 import ScanStatesRequest as ShardScanRequest
from statecast.shard.v1.shard_service_pb2_grpc import ShardServiceStub
from statecast.state.v1.state_pb2 import StateKey

BATCH = 500
PAGE = 500


class InstanceStore:
    """The stores of one instance, by the address of its shard service."""

    def __init__(self, address: str) -> None:
        self._channel = grpc.insecure_channel(address)
        self._stub: Any = ShardServiceStub(self._channel)

    def values(self, store: str, groups: Iterable[str]) -> State:
        """The values of a store with one value per group; absent groups are left out."""
        found: State = {}
        pending = iter(sorted(groups))
        while chunk := list(islice(pending, BATCH)):
            keys = [KeyQuery(key=StateKey(group=group)) for group in chunk]
            request = ShardBatchRequest(query=BatchGetStatesRequest(store=store, keys=keys))
            for result in self._stub.BatchGetStates(request, timeout=scaled(10)).answer.results:
                assert not result.HasField("error"), f"{chunk[result.index]}: {result.error}"
                if result.HasField("state"):
                    found[(chunk[result.index], "", "")] = Order.FromString(result.state.payload)
        return found

    def members(self, store: str, groups: Iterable[str]) -> State:
        """The members of the groups of a store with many values per group."""
        return {key: order for group in sorted(groups) for key, order in self._group(store, group).items()}

    def _group(self, store: str, group: str) -> State:
        found: State = {}
        token = ""
        while True:
            query = ScanStatesRequest(store=store, group=group, page_size=PAGE, page_token=token)
            page = self._stub.ScanStates(ShardScanRequest(query=query), timeout=scaled(10)).answer
            for state in page.states:
                found[(state.key.group, state.key.sort, state.key.member)] = Order.FromString(state.payload)
            token = page.next_page_token
            if not token:
                return found

    def close(self) -> None:
        """Closes the channel."""
        self._channel.close()
