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
from statecast_client.shard_map import ShardMap, hash_group

STORE = query_pb2.Store(store="rows", topic="rows", message="statecast.orders.v1.Order", partitions=4)


class FakeInstance(query_grpc.QueryServiceServicer):
    """Answers for every key of `rows` with its own name, unless it is told to fail or to wait."""

    def __init__(self) -> None:
        self.address = ""
        self.peers: Sequence[FakeInstance] = ()
        self.failure: grpc.StatusCode | None = None
        self.gate = asyncio.Event()
        self.gate.set()
        self.gets: list[str] = []
        self.batches: list[query.BatchGetStatesRequest] = []
        self.scans: list[query.ScanStatesRequest] = []
        self.listings = 0
        self.unchanged_listings = 0
        self.results: list[list[query_pb2.KeyResult]] = []

    async def GetState(self, request: query.GetStateRequest, context: Any) -> query.GetStateResponse:  # noqa: N802
        self.gets.append(request.key.group)
        await self._pass(context)
        answer = query.GetStateResponse()
        answer.state.key.CopyFrom(request.key)
        answer.freshness.answered_by = self.address
        return answer

    async def BatchGetStates(  # noqa: N802
        self, request: query.BatchGetStatesRequest, context: Any
    ) -> query.BatchGetStatesResponse:
        self.batches.append(request)
        await self._pass(context)
        if request.HasField("max_wait"):
            while not self.results:  # noqa: ASYNC110  the test fills a list
                await asyncio.sleep(0.01)
            return query.BatchGetStatesResponse(results=self.results.pop(0))
        return query.BatchGetStatesResponse(
            results=[
                query_pb2.KeyResult(index=index, state=query_pb2.State(key=each.key))
                for index, each in enumerate(request.keys)
            ]
        )

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

    async def _pass(self, context: Any) -> None:
        await self.gate.wait()
        if self.failure is not None:
            await context.abort(self.failure, "store: told to fail")


class Cluster:
    """Two fake instances that share four partitions, and a client that knows the first."""

    def __init__(self, instances: Sequence[FakeInstance], client: StatecastClient) -> None:
        self.instances = instances
        self.client = client

    def owner(self, group: str) -> FakeInstance:
        partition = ShardMap.of(query.ListShardsResponse(stores=[STORE])).partition(STORE.store, hash_group(group))
        assert partition is not None
        return self.instances[partition % len(self.instances)]

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
    async with StatecastClient([instances[0].address], timeout_s=10) as client:
        yield Cluster(instances, client)
    for server in servers:
        await server.stop(None)
