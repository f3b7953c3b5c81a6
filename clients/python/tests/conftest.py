"""Fake instances of the query service, on real ports."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

import grpc
import pytest

from statecast.query.v1 import query_pb2
from statecast.query.v1 import query_service_pb2 as query
from statecast.query.v1 import query_service_pb2_grpc as query_grpc
from statecast.state.v1 import state_pb2
from statecast_client import StatecastClient
from statecast_client.errors import ABSENCE, FRESHNESS
from statecast_client.shard_map import ShardMap
from testkit.waiting import scaled

STORE = query_pb2.Store(store="rows", topic="rows", message="statecast.orders.v1.Order", partitions=4)


ERRORS = {"large": grpc.StatusCode.RESOURCE_EXHAUSTED, "lost": grpc.StatusCode.UNAVAILABLE}
"""The status of a failing key of a batch, by the beginning of its group; the large ones do not fail alone."""


class FakeInstance(query_grpc.QueryServiceServicer):
    """Answers for every key of `rows` with its own name, unless it is told to fail or to wait.

    Groups that begin with `absent`, `deleted` or a word of ERRORS have no value.
    """

    def __init__(self) -> None:
        self.address = ""
        self.peers: Sequence[FakeInstance] = ()
        self.failure: grpc.StatusCode | None = None
        self.gate = asyncio.Event()
        self.gate.set()
        self.max_batch = 1000
        self.free_keys: int | None = None
        """The keys that it answers in one batch before it refuses the batch as too much; None for any number."""
        self.refusals: dict[int, grpc.StatusCode] = {}
        """How a batch fails that has a key of a partition."""
        self.forwards: set[int] = set()
        """The partitions that it says it has passed on."""
        self.gets: list[str] = []
        self.batches: list[query.BatchGetStatesRequest] = []
        self.scans: list[query.ScanStatesRequest] = []
        self.listings = 0
        self.unchanged_listings = 0
        self.results: list[list[query_pb2.KeyResult]] = []

    async def GetState(self, request: query.GetStateRequest, context: Any) -> query.GetStateResponse:  # noqa: N802
        self.gets.append(request.key.group)
        await self._pass(context)
        group = request.key.group
        if request.store != STORE.store:
            await context.abort(grpc.StatusCode.NOT_FOUND, f"store: there is no `{request.store}`")
        if not group or "\0" in group:
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, "key.group: it is wrong")
        if group.startswith("lost"):
            await context.abort(grpc.StatusCode.UNAVAILABLE, "nobody serves it")
        freshness = self._freshness(partition_of(group))
        if (absence := absence_of(group)) is not None:
            absence.ClearField("unchanged_since")
            trailing = (ABSENCE, absence.SerializeToString()), (FRESHNESS, freshness.SerializeToString())
            await context.abort(grpc.StatusCode.NOT_FOUND, f"key: `{group}` has no value in `rows`", trailing)
        return query.GetStateResponse(state=query_pb2.State(key=request.key, payload=b"row"), freshness=freshness)

    async def BatchGetStates(  # noqa: N802
        self, request: query.BatchGetStatesRequest, context: Any
    ) -> query.BatchGetStatesResponse:
        self.batches.append(request)
        await self._pass(context, *(each.key.group for each in request.keys))
        if request.HasField("max_wait"):
            while not self.results:  # noqa: ASYNC110  the test fills a list
                await asyncio.sleep(0.01)
            return query.BatchGetStatesResponse(results=self.results.pop(0))
        if request.store != STORE.store:
            await context.abort(grpc.StatusCode.NOT_FOUND, f"store: there is no `{request.store}`")
        if len(request.keys) > self.max_batch:
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, "keys, ranges: there are too many")
        if self.free_keys is not None and len(request.keys) > self.free_keys:
            await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "too much to do")
        if any(each.key.sort and not each.key.member for each in request.keys):
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, "keys[0].key.member: it is empty")
        response, by_partition = query.BatchGetStatesResponse(), dict[int, query_pb2.Freshness]()
        for index, each in enumerate(request.keys):
            result, partition = response.results.add(index=index), partition_of(each.key.group)
            code = next((code for word, code in ERRORS.items() if each.key.group.startswith(word)), None)
            if code is not None:
                result.error.code, result.error.message = code.value[0], "of a batch"
                continue
            by_partition.setdefault(partition, self._freshness(partition)).keys.append(index)
            if (absence := absence_of(each.key.group)) is not None:
                result.absence.CopyFrom(absence)
            else:
                result.state.key.CopyFrom(each.key)
                result.state.payload = b"row"
        response.freshness.extend(by_partition.values())
        return response

    async def ScanStates(self, request: query.ScanStatesRequest, context: Any) -> query.ScanStatesResponse:  # noqa: N802
        self.scans.append(request)
        await self._pass(context)
        page = int(request.page_token or 0)
        state = query_pb2.State(key=state_pb2.StateKey(group=f"{request.group}{page}"))
        return query.ScanStatesResponse(states=[state], next_page_token=str(page + 1) if page < 2 else "")

    async def ListShards(self, request: query.ListShardsRequest, context: Any) -> query.ListShardsResponse:  # noqa: N802
        self.listings += 1
        await self._pass(context)
        version = repr([peer.address for peer in self.peers]).encode()
        if request.known_version == version:
            self.unchanged_listings += 1
            return query.ListShardsResponse(version=version)
        listing = query.ListShardsResponse(stores=[STORE], version=version)
        for partition in range(STORE.partitions):
            shard = listing.shards.add(store="rows", partition=partition)
            for rank in range(1, len(self.peers) + 1):
                holder = self.peers[(partition + rank - 1) % len(self.peers)]
                shard.replicas.add(address=holder.address, rank=rank, serving=True)
        return listing

    def _freshness(self, partition: int) -> query_pb2.Freshness:
        position = state_pb2.Position(epoch=1, offset=9)
        is_forwarded = partition in self.forwards
        return query_pb2.Freshness(
            partition=partition, current_through=position, answered_by=self.address, forwarded=is_forwarded
        )

    async def _pass(self, context: Any, *groups: str) -> None:
        await self.gate.wait()
        refusals = (self.refusals.get(partition_of(group)) for group in groups)
        failure = next(filter(None, refusals), self.failure)
        if failure is not None:
            await context.abort(failure, "store: told to fail")


def partition_of(group: str) -> int:
    partition = ShardMap.of(query.ListShardsResponse(stores=[STORE])).partition_of(STORE.store, group)
    assert partition is not None
    return partition


def absence_of(group: str) -> query_pb2.Absence | None:
    """Returns the absence that a batch reports of a key without a value; None for a key that has one."""
    position = state_pb2.Position(epoch=1, offset=5)
    if group.startswith("deleted"):
        return query_pb2.Absence(position=position, deleted=True)
    return query_pb2.Absence(position=position, unchanged_since=position) if group.startswith("absent") else None


class Cluster:
    """Two fake instances that share four partitions, and a client that knows the first."""

    def __init__(self, instances: Sequence[FakeInstance], client: StatecastClient) -> None:
        self.instances = instances
        self.client = client

    def owner(self, group: str) -> FakeInstance:
        return self.instances[partition_of(group) % len(self.instances)]

    def other(self, group: str) -> FakeInstance:
        return next(each for each in self.instances if each is not self.owner(group))


@pytest.fixture
async def cluster() -> AsyncIterator[Cluster]:
    instances = [FakeInstance(), FakeInstance()]  # type: ignore[abstract]
    servers = []
    for instance in instances:
        server = grpc.aio.server()
        query_grpc.add_QueryServiceServicer_to_server(instance, server)
        instance.address = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
        instance.peers = instances
        await server.start()
        servers.append(server)
    async with StatecastClient([instances[0].address], timeout_s=scaled(10)) as client:
        yield Cluster(instances, client)
    for server in servers:
        await server.stop(None)
