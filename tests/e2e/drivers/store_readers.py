"""Whole stores as one query instance holds them, and groups as the gateway answers them by REST."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from typing import Any

import grpc
from google.protobuf import json_format
from google.protobuf.message import Message

from drivers.gateway_client import Frame, GatewayClient
from drivers.pipeline_checks import Expected, first_of, has_members
from drivers.pipeline_models import NUL, canonical
from statecast.query.v1.query_pb2 import State
from statecast.query.v1.query_service_pb2 import ScanStatesRequest
from statecast.shard.v1.shard_service_pb2 import ListPartitionsRequest
from statecast.shard.v1.shard_service_pb2 import ScanStatesRequest as ShardScanRequest
from statecast.shard.v1.shard_service_pb2_grpc import ShardServiceStub
from statecast.state.v1.state_pb2 import StateKey
from testkit.waiting import scaled

PAGE_SIZE = 1000


def key_text(key: StateKey) -> str:
    """The key as it stands on the keyed topic."""
    return NUL.join((key.group, key.sort, key.member)) if key.member else key.group


def store_of_instance(shard_address: str, store: str) -> dict[str, bytes]:
    """The payloads that the instance itself holds of a store, in all its partitions, by the texts of their keys."""
    with closing(grpc.insecure_channel(shard_address)) as channel:
        stub: Any = ShardServiceStub(channel)
        listed = stub.ListPartitions(ListPartitionsRequest(), timeout=scaled(5)).partitions
        partitions = [each.freshness.partition for each in listed if each.store == store]
        states = [state for partition in partitions for state in _states(stub, store, partition)]
    return {key_text(state.key): state.payload for state in states}


def group_by_rest(client: GatewayClient, store: str, group: str, expected: Expected) -> dict[str, bytes]:
    """The rows of a group, or the one of a key, in `canonical` form; of the shape and message of those expected."""
    row = first_of(expected)
    if has_members(expected):
        states = list(_members(client, f"/v1/stores/{store}/groups/{group}"))
    else:
        answer = client.get(f"/v1/stores/{store}/{group}")
        assert answer.status_code == 200, answer.text
        states = [answer.json()]
    return _rows(states, row)


def window_by_rest(client: GatewayClient, store: str, row: Message, limit: int, **window: str) -> dict[str, bytes]:
    """The rows of a store between these groups and sort values, `limit` a page; of the message of `row`."""
    return _rows(_members(client, f"/v1/stores/{store}", limit, **window), row)


def _rows(states: Iterable[Mapping[str, Any]], row: Message) -> dict[str, bytes]:
    return {
        key_text(StateKey(**state["key"])): canonical(json_format.ParseDict(state["row"], type(row)()))
        for state in states
    }


def _states(stub: Any, store: str, partition: int) -> Iterator[State]:
    query = ScanStatesRequest(store=store, page_size=PAGE_SIZE)
    while True:
        page = stub.ScanStates(ShardScanRequest(query=query, partition=partition), timeout=scaled(10)).answer
        yield from page.states
        if not page.next_page_token:
            return
        query.page_token = page.next_page_token


def _members(client: GatewayClient, path: str, limit: int = PAGE_SIZE, **bounds: str) -> Iterator[Mapping[str, Any]]:
    token = ""
    while True:
        answer = client.get(path, limit=limit, page_token=token, **bounds)
        assert answer.status_code == 200, answer.text
        page: Frame = answer.json()
        yield from page["states"]
        token = page["next_page_token"]
        if not token:
            return
