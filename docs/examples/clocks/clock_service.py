"""A query service by somebody else: it serves the store `clocks` by the contract alone, and edges ask it.

    pip install statecast-contract
    python clock_service.py 127.0.0.1:50052

The store has one partition, which this process holds. A row, JSON, is the time in a city, and changes every second.
"""

import asyncio
import json
import sys
from datetime import UTC, datetime, timedelta
from typing import Any

import grpc
import grpc.aio

from statecast.query.v1 import query_pb2 as query
from statecast.query.v1 import query_service_pb2 as calls
from statecast.state.v1.state_pb2 import Position, StateKey

SERVICE, STORE, EPOCH = "statecast.query.v1.QueryService", "clocks", 1
HOURS = {"accra": 0.0, "kolkata": 5.5, "tokyo": 9.0}
Context = grpc.aio.ServicerContext[object, object]


class Clocks:
    def __init__(self, address: str) -> None:
        self.listing = calls.ListShardsResponse(version=b"1")
        self.listing.stores.add(store=STORE, topic=STORE, message="json", partitions=1, readers=query.READERS_EVERYONE)
        self.listing.shards.add(store=STORE).replicas.add(instance="clocks", address=address, rank=1, serving=True)
        self.rows = dict[str, query.State]()
        self.last = Position(epoch=EPOCH, offset=0)
        self.ticked = asyncio.Condition()

    async def tick(self) -> None:
        while True:
            async with self.ticked:
                self.last = Position(epoch=EPOCH, offset=self.last.offset + 1)
                for city, hours in HOURS.items():
                    row = json.dumps({"city": city, "time": f"{datetime.now(UTC) + timedelta(hours=hours):%H:%M:%S}"})
                    self.rows[city] = query.State(key=StateKey(group=city), position=self.last, payload=row.encode())
                self.ticked.notify_all()
            await asyncio.sleep(1)

    async def list_shards(self, request: calls.ListShardsRequest, _: Context) -> calls.ListShardsResponse:
        is_known = request.known_version == self.listing.version
        return calls.ListShardsResponse(version=self.listing.version) if is_known else self.listing

    async def batch(self, request: calls.BatchGetStatesRequest, _: Context) -> calls.BatchGetStatesResponse:
        answer = self.newer(request)
        if not answer.results and request.max_wait.ToMilliseconds():
            async with self.ticked:
                await self.ticked.wait()  # a second at most
            answer = self.newer(request)
        return answer

    def newer(self, request: calls.BatchGetStatesRequest) -> calls.BatchGetStatesResponse:
        answer = calls.BatchGetStatesResponse()
        answer.freshness.add(current_through=self.last, answered_by="clocks", keys=range(len(request.keys)))
        for index, each in enumerate(request.keys):
            after = each.after.offset if each.after.epoch == EPOCH else -1
            state = self.rows.get(each.key.group)
            if state is None:
                answer.results.add(index=index, absence=query.Absence(position=self.last))
            elif state.position.offset > after:
                answer.results.add(index=index, state=state)
        return answer

    async def scan(self, request: calls.ScanStatesRequest, _: Context) -> calls.ScanStatesResponse:
        rows = [self.rows[city] for city in sorted(self.rows) if request.group in ("", city)]
        return calls.ScanStatesResponse(states=rows, freshness=query.Freshness(current_through=self.last))


async def serve(address: str) -> None:
    clocks, server = Clocks(address), grpc.aio.server()
    methods: dict[str, tuple[Any, type[Any]]] = {
        "ListShards": (clocks.list_shards, calls.ListShardsRequest),
        "BatchGetStates": (clocks.batch, calls.BatchGetStatesRequest),
        "ScanStates": (clocks.scan, calls.ScanStatesRequest),
    }
    handlers: dict[str, Any] = {
        name: grpc.unary_unary_rpc_method_handler(call, request.FromString, lambda answer: answer.SerializeToString())
        for name, (call, request) in methods.items()
    }
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, handlers),))
    server.add_insecure_port(address)
    await server.start()
    await clocks.tick()


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1]))
