"""Programs of the staff look up states by gRPC through the gateway; nobody else does."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import grpc
import httpx
import pytest
from drivers.gateway_client import Gateway, TokenClient, client_of
from drivers.lookups import Lookups
from drivers.order_source import OrderSource

from local_stack.running_stack import RunningStack
from statecast.query.v1.query_service_pb2 import GetStateRequest
from statecast.query.v1.query_service_pb2_grpc import QueryServiceStub
from statecast.shard.v1.shard_service_pb2 import ListPartitionsRequest
from statecast.shard.v1.shard_service_pb2_grpc import ShardServiceStub
from statecast.state.v1.state_pb2 import StateKey
from testkit.waiting import scaled

METHOD = "/statecast.query.v1.QueryService/GetState"


@pytest.fixture
def channel(gateway: Gateway) -> Iterator[grpc.Channel]:
    """A connection to the gateway."""
    credentials = grpc.ssl_channel_credentials(Path(gateway.ca_certificate).read_bytes())
    with grpc.secure_channel(urlsplit(gateway.https).netloc, credentials) as opened:
        yield opened


@pytest.fixture
def stub(channel: grpc.Channel) -> Any:
    """The query service as the gateway offers it."""
    return QueryServiceStub(channel)


@pytest.fixture
def request_of_an_order(source: OrderSource, lookups: Lookups) -> GetStateRequest:
    """A lookup of an order that is there."""
    key = StateKey(group=source.place("customer-0001", {"item-a": 1}).order_id)
    lookups.wait_for("orders-by-key", key)
    return GetStateRequest(store="orders-by-key", key=key)


def test_staff_look_up_a_state_with_a_key_or_a_token(
    stack: RunningStack, stub: Any, request_of_an_order: GetStateRequest, lookups: Lookups
) -> None:
    straight = lookups.get("orders-by-key", request_of_an_order.key)
    for client in (client_of(stack, "operator"), TokenClient(stack, "operator", 60)):
        metadata = [(name.lower(), value) for name, value in client.headers.items()]
        answer = stub.GetState(request_of_an_order, metadata=metadata, timeout=scaled(10))

        assert answer.state == straight.state


@pytest.mark.parametrize(
    ("user", "code"),
    [("", grpc.StatusCode.UNAUTHENTICATED), ("alice", grpc.StatusCode.PERMISSION_DENIED)],
)
def test_nobody_else_gets_an_answer(
    stack: RunningStack, stub: Any, request_of_an_order: GetStateRequest, user: str, code: grpc.StatusCode
) -> None:
    headers = client_of(stack, user).headers if user else {}
    metadata = [(name.lower(), value) for name, value in headers.items()]
    with pytest.raises(grpc.RpcError) as refused:
        stub.GetState(request_of_an_order, metadata=metadata, timeout=scaled(10))

    assert refused.value.code() == code


def test_the_internal_service_is_not_behind_the_gateway(stack: RunningStack, channel: grpc.Channel) -> None:
    metadata = [(name.lower(), value) for name, value in client_of(stack, "operator").headers.items()]
    internal: Any = ShardServiceStub(channel)
    with pytest.raises(grpc.RpcError) as refused:
        internal.ListPartitions(ListPartitionsRequest(), metadata=metadata, timeout=scaled(10))

    assert refused.value.code() == grpc.StatusCode.NOT_FOUND


def test_what_is_no_grpc_is_told_so(stack: RunningStack, gateway: Gateway) -> None:
    headers = client_of(stack, "operator").headers | {"Content-Type": "application/json"}
    answer = httpx.post(gateway.https + METHOD, headers=headers, verify=gateway.tls(), timeout=scaled(10))

    assert answer.status_code == 415
