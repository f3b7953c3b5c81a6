"""Whole stores as one query instance holds them, and groups as the gateway answers them by REST."""

from collections.abc import Iterable, Iterator
from contextlib import closing
from typing import Any

import grpc
from google.protobuf.message import Message

from drivers.gateway_client import Frame, GatewayClient
from drivers.pipeline_checks import Expected, first_of
from drivers.pipeline_models import NUL, canonical_json
from statecast.query.v1.query_pb2 import State
from statecast.query.v1.query_service_pb2 import ScanStatesRequest
from statecast.shard.v1.shard_service_pb2 import ListPartitionsRequest
from statecast.shard.v1.shard_service_pb2 import ScanStatesRequest as ShardScanRequest
from statecast.shard.v1.shard_service_pb2_grpc import ShardServiceStub
from statecast.state.v1.state_pb2 import StateKey
from testkit.waiting import scaled

PAGE_SIZE = 1000


def key_text(key: StateKey) -> str:
    """Returns the key in the form of the keyed topic."""
    return NUL.join((key.group, key.sort, key.member)) if key.member else key.group


def store_of_instance(shard_address: str, store: str) -> dict[str, bytes]:
    """Returns the payloads that the instance itself holds of a store, in all partitions, by the texts of keys."""
    with closing(grpc.insecure_channel(shard_address)) as channel:
        stub: Any = ShardServiceStub(channel)
        listed = stub.ListPartitions(ListPartitionsRequest(), timeout=scaled(5)).partitions
        partitions = [each.freshness.partition for each in listed if each.store == store]
        states = [state for partition in partitions for state in _states(stub, store, partition)]
    return {key_text(state.key): state.payload for state in states}


def group_by_rest(client: GatewayClient, store: str, group: str, expected: Expected) -> dict[str, bytes]:
    """Returns the rows of a group, or the one of a key, in `canonical` form; of the message of those expected."""
    return _rows(_pages(client, store, group=group), first_of(expected), group)


def window_by_rest(client: GatewayClient, store: str, row: Message, limit: int, **window: str) -> dict[str, bytes]:
    """Returns the rows of a store between these groups and sort values, `limit` a page; of the message of `row`."""
    return _rows(_pages(client, store, limit, **window), row)


def _rows(rows: Iterable[Frame], message: Message, group: str = "") -> dict[str, bytes]:
    return {key_text(_key_of(row, group)): canonical_json(row["row"], type(message)) for row in rows}


def _key_of(row: Frame, group: str) -> StateKey:
    return StateKey(group=row.get("group", group), sort=row.get("sort", ""), member=row.get("key", ""))


def _states(stub: Any, store: str, partition: int) -> Iterator[State]:
    query = ScanStatesRequest(store=store, page_size=PAGE_SIZE)
    while True:
        page = stub.ScanStates(ShardScanRequest(query=query, partition=partition), timeout=scaled(10)).answer
        yield from page.states
        if not page.next_page_token:
            return
        query.page_token = page.next_page_token


def _pages(client: GatewayClient, store: str, limit: int = PAGE_SIZE, **bounds: str) -> Iterator[Frame]:
    token = ""
    while True:
        answer = client.rows(store, limit=limit, page_token=token, **bounds)
        assert answer.status_code == 200, answer.text
        page: Frame = answer.json()
        yield from page["rows"]
        token = page["next_page_token"]
        if not token:
            return
