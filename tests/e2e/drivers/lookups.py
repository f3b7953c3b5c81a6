"""Lookups over gRPC, straight at one instance of the query service."""

from typing import Any

import grpc
from google.protobuf.duration_pb2 import Duration

from drivers.waiting import scaled
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
from statecast.state.v1.state_pb2 import StateKey

PAGE_SIZE = 1000


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
        """Closes the channel."""
        self._channel.close()
