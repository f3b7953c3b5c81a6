"""Compares the rows of each partition's replicas, read from their internal services, which never forward."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import grpc

from drivers.state_writer import StateLog
from statecast.query.v1.query_pb2 import KeyQuery, KeyResult
from statecast.query.v1.query_service_pb2 import BatchGetStatesRequest, ScanStatesRequest
from statecast.shard.v1.shard_service_pb2 import BatchGetStatesRequest as ShardBatchRequest
from statecast.shard.v1.shard_service_pb2 import ListPartitionsRequest
from statecast.shard.v1.shard_service_pb2 import ScanStatesRequest as ShardScanRequest
from statecast.shard.v1.shard_service_pb2_grpc import ShardServiceStub
from statecast.state.v1.state_pb2 import StateKey
from testkit.query_cluster import REPLICAS, STORE
from testkit.waiting import eventually, scaled

BATCH = 500
PARTITIONS = 9
"""Of the topic that the three instances share."""


@dataclass(frozen=True)
class Replica:
    """The calls of one instance that holds a partition."""

    instance: str
    stub: Any


@dataclass(frozen=True)
class Rows:
    """A partition as one replica answers: its states in their order, and the result of every key, both as bytes."""

    states: tuple[bytes, ...]
    results: dict[str, bytes]


def assert_replicas_equal(shard_addresses: Mapping[str, str], log: StateLog) -> None:
    """Waits until every partition has all its replicas and these have everything; then asserts that they are equal.

    They must also equal the log: the newest payload of each key at its offset, or the deletion.
    """
    with _replicas_of(shard_addresses) as replicas_now:
        replicas = eventually(lambda: _complete(replicas_now(), log), timeout_s=60)
        for partition, holders in replicas.items():
            keys = sorted(key for key, place in log.partition_of.items() if place == partition)
            read = [(each.instance, _states(each.stub, partition), _results(each.stub, keys)) for each in holders]
            rows = {name: Rows(tuple(states), dict(results)) for name, states, results in read}
            first, *others = rows.values()

            assert all(other == first for other in others), f"partition {partition} differs between {sorted(rows)}"
            _assert_as_written(first, log, keys)


@contextmanager
def _replicas_of(shard_addresses: Mapping[str, str]) -> Iterator[Any]:
    channels = {name: grpc.insecure_channel(address) for name, address in shard_addresses.items()}
    try:
        yield lambda: _holders(channels)
    finally:
        for channel in channels.values():
            channel.close()


def _holders(channels: Mapping[str, grpc.Channel]) -> dict[int, list[tuple[Replica, int]]]:
    """Returns each partition's replicas, with the offset through which each is current; -1 if it does not serve."""
    holders: defaultdict[int, list[tuple[Replica, int]]] = defaultdict(list)
    for name, channel in channels.items():
        stub: Any = ShardServiceStub(channel)
        try:
            listed = stub.ListPartitions(ListPartitionsRequest(), timeout=scaled(5)).partitions
        except grpc.RpcError as error:
            raise AssertionError(f"{name}: {error}") from error
        for each in listed:
            through = each.freshness.current_through.offset if each.serving else -1
            holders[each.freshness.partition].append((Replica(name, stub), through))
    return holders


def _complete(holders: dict[int, list[tuple[Replica, int]]], log: StateLog) -> dict[int, list[Replica]]:
    ends = log.ends()
    assert len(ends) == PARTITIONS, f"some partitions have no records: {ends}"
    for partition, end in ends.items():
        offsets = {replica.instance: through for replica, through in holders.get(partition, [])}

        assert len(offsets) == REPLICAS, f"partition {partition} is held by {offsets}"
        assert set(offsets.values()) == {end}, f"partition {partition}: {offsets}, not {end}"
    return {partition: [replica for replica, _ in replicas] for partition, replicas in holders.items()}


def _states(stub: Any, partition: int) -> Iterator[bytes]:
    query = ScanStatesRequest(store=STORE, page_size=BATCH)
    while True:
        page = stub.ScanStates(ShardScanRequest(query=query, partition=partition), timeout=scaled(10)).answer
        for state in page.states:
            yield state.SerializeToString(deterministic=True)
        if not page.next_page_token:
            return
        query.page_token = page.next_page_token


def _results(stub: Any, keys: list[str]) -> Iterator[tuple[str, bytes]]:
    for start in range(0, len(keys), BATCH):
        chunk = keys[start : start + BATCH]
        query = BatchGetStatesRequest(store=STORE, keys=[KeyQuery(key=StateKey(group=key)) for key in chunk])
        for result in stub.BatchGetStates(ShardBatchRequest(query=query), timeout=scaled(10)).answer.results:
            key = chunk[result.index]
            result.index = 0
            yield key, result.SerializeToString(deterministic=True)


def _assert_as_written(rows: Rows, log: StateLog, keys: list[str]) -> None:
    newest = log.newest()
    held = {key: KeyResult.FromString(rows.results[key]) for key in keys}
    values = {
        key: (each.state.position.offset, each.state.payload) for key, each in held.items() if each.HasField("state")
    }
    deletions = {key: each.absence.position.offset for key, each in held.items() if each.absence.deleted}

    assert values == {key: (newest[key].offset, newest[key].payload) for key in keys if newest[key].payload is not None}
    assert deletions == {key: newest[key].offset for key in keys if newest[key].payload is None}
    assert len(rows.states) == len(values)
