"""Reads that wait for the disk run in threads, so that the event loop is not blocked."""

import time
from threading import Thread, current_thread, main_thread

import pytest

from query_service.cluster.view import View
from query_service.metrics import Metrics
from query_service.reads.dispatch import Dispatch
from query_service.reads.hedge import Hedging
from query_service.reads.local import LocalReads
from query_service.reads.request_checks import Limits
from query_service.reads.routed import RoutedReads
from query_service.server.peers import Peers
from query_service.storage.rocksdb_engine import Disk, RocksdbEngine
from statecast.query.v1 import query_service_pb2 as api
from statecast.state.v1 import state_pb2
from testkit.query_service import MessageReads, OpenReplica, preference_of, put, soon

STORE = "orders-by-key"
LIMITS = Limits(batch_keys=1000, page_size=100, default_page_size=2, wait_ms=10_000, answer_bytes=1 << 20)
GROUPS = [f"order-{number}" for number in range(400)]


@pytest.fixture
def store_fields() -> dict[str, object]:
    return {"history": {"versions": 2}}


@pytest.fixture
async def cold(view: View, open_replica: OpenReplica, store_fields: dict[str, object]) -> View:
    """Like `serving_view`, with rows on disk that no process has read."""
    for partition in range(4):
        replica = open_replica(partition, **store_fields)
        groups = [group for group in GROUPS if view.shard_of(STORE, group)[1] == partition]
        replica.apply([put(group, at + 1, at, b"r" * 5000) for at, group in enumerate(groups)], len(groups))
        replica.store.close()
    view.replicas = {(STORE, partition): open_replica(partition, **store_fields) for partition in range(4)}
    return view


@pytest.fixture
def threads(monkeypatch: pytest.MonkeyPatch) -> list[Thread]:
    """The threads that read keys of RocksDB beyond its caches, and many keys at once."""
    seen: list[Thread] = []
    read = RocksdbEngine.get_many

    def get_many(self: RocksdbEngine, keys: list[bytes]) -> list[bytes | None]:
        seen.append(current_thread())
        return read(self, keys)

    monkeypatch.setattr(RocksdbEngine, "get_many", get_many)
    return seen


@pytest.fixture(params=["local", "routed"])
def reads(request: pytest.FixtureRequest, cold: View, metrics: Metrics) -> MessageReads:
    local = LocalReads(cold, LIMITS, time.monotonic)
    if request.param == "local":
        return MessageReads(local)
    peers = Peers(1.0, 1.0, time.monotonic)
    hedging = Hedging(0.02, 5.0, 0.1, metrics, time.monotonic)
    order = preference_of(cold, peers.of)
    dispatch = Dispatch(cold, local, peers.of, order, hedging, 5.0, metrics, time.monotonic)
    return MessageReads(RoutedReads(cold, local, dispatch, LIMITS, lambda _: None))


def batch() -> api.BatchGetStatesRequest:
    request = api.BatchGetStatesRequest(store=STORE)
    for group in GROUPS:
        request.keys.add().key.group = group
    return request


def get(group: str) -> api.GetStateRequest:
    return api.GetStateRequest(store=STORE, key=state_pb2.StateKey(group=group))


async def test_many_cold_keys_are_read_in_threads_and_at_once_when_they_are_known(
    reads: MessageReads, threads: list[Thread]
) -> None:
    answer = await reads.batch(batch(), soon())

    assert len(answer.results) == len(GROUPS)
    assert main_thread() not in threads

    threads.clear()
    answer = await reads.batch(batch(), soon())

    assert len(answer.results) == len(GROUPS)
    assert {*threads} == {main_thread()}


async def test_a_cold_key_is_read_in_a_thread_while_the_disk_is_slow(
    reads: MessageReads, threads: list[Thread], monkeypatch: pytest.MonkeyPatch
) -> None:
    await reads.get(get(GROUPS[100]), soon())
    assert not threads

    monkeypatch.setattr(Disk, "is_slow", True)
    await reads.get(get(GROUPS[200]), soon())

    assert len(threads) == 1
    assert threads[0] is not main_thread()

    await reads.get(get(GROUPS[200]), soon())

    assert len(threads) == 1


async def test_versions_are_read_in_threads(reads: MessageReads, threads: list[Thread]) -> None:
    request = api.ListVersionsRequest(store=STORE, key=get(GROUPS[0]).key)
    answer = await reads.versions(request, soon())

    assert len(answer.versions) == 1
    assert main_thread() not in threads
