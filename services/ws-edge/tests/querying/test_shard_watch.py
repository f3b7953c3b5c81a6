"""The shard map is asked for at the start, at once after a failure, and until somebody answers."""

import asyncio

import grpc

from ws_edge.querying.addresses import Addresses
from ws_edge.querying.query_client import QueryClient
from ws_edge.querying.shard_watch import ShardWatch
from ws_edge.testing.edge import Clock, FakeQueryService, until


async def test_a_failure_is_noticed_at_once_and_the_return_soon(service: FakeQueryService) -> None:
    service.failing = grpc.StatusCode.UNAVAILABLE
    client = QueryClient(Addresses([service.address], Clock(), 0.0), timeout=30.0, batch_limit=10)
    watch = ShardWatch(client, interval=3600.0)
    assert watch.reason == "the query service has not answered yet"

    task = asyncio.create_task(watch.run())
    await until(lambda: "scripted to fail" in str(watch.reason))

    service.failing = None
    await until(lambda: watch.reason is None)

    calls = service.calls["ListShards"]
    client.on_failure()
    await until(lambda: service.calls["ListShards"] > calls)

    task.cancel()
    await client.close()
