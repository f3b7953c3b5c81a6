"""What unit tests of the edge stand on: a query service in memory that fails as it is told to, and a real edge."""

import asyncio
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import grpc
import grpc.aio
from google.protobuf.message import Message
from websockets.asyncio.client import connect

from statecast.query.v1 import query_pb2, query_service_pb2
from statecast.query.v1.query_service_pb2_grpc import QueryServiceServicer, add_QueryServiceServicer_to_server
from statecast.state.v1.state_pb2 import Position, StateKey
from ws_edge import stores
from ws_edge.__main__ import build, run
from ws_edge.errors import RequestError
from ws_edge.server import listen
from ws_edge.settings import Settings
from ws_edge.states import StoreKey, Version
from ws_edge.subscription import Subscription

Context = grpc.aio.ServicerContext[Message, Message]
STORES = ("orders-by-key", "orders-by-customer", "orders-by-item")


class FakeQueryService(QueryServiceServicer):
    """Scripted: `put` and `delete` change it, `failing` makes every call fail, `delay` makes it slow."""

    def __init__(self, epoch: int = 7) -> None:
        self.epoch = epoch
        self.offset = 0
        self.held: dict[StoreKey, query_pb2.State | query_pb2.Absence] = {}
        self.failing: grpc.StatusCode | None = None
        self.delay = 0.0
        self.asked: Counter[StoreKey] = Counter()
        self.calls: Counter[str] = Counter()
        self.most_at_once = 0
        self._at_once = 0
        self.address = ""

    async def start(self, address: str = "127.0.0.1:0") -> str:
        """Listens and returns the address; a service that was stopped may be started again."""
        self._server = grpc.aio.server(options=[("grpc.so_reuseport", 0)])
        add_QueryServiceServicer_to_server(self, self._server)
        port = self._server.add_insecure_port(address)
        await self._server.start()
        self.address = f"127.0.0.1:{port}"
        return self.address

    async def stop(self) -> None:
        """Stops at once."""
        await self._server.stop(None)

    def put(self, key: StoreKey, row: Message, commit: datetime | None = None) -> int:
        """Applies a row and returns its offset."""
        state = query_pb2.State(key=_key(key), position=self._next(), payload=row.SerializeToString())
        state.commit_time.FromDatetime(commit or datetime.now(UTC))
        self.held[key] = state
        return self.offset

    def delete(self, key: StoreKey) -> int:
        """Applies a deletion and returns its offset."""
        absence = query_pb2.Absence(position=self._next(), deleted=True)
        absence.commit_time.FromDatetime(datetime.now(UTC))
        self.held[key] = absence
        return self.offset

    async def GetState(  # noqa: N802  gRPC names it
        self, _: query_service_pb2.GetStateRequest, context: Context
    ) -> query_service_pb2.GetStateResponse:
        """The edge reads in batches only."""
        await context.abort(grpc.StatusCode.UNIMPLEMENTED, "the edge reads in batches only")

    async def BatchGetStates(  # noqa: N802  gRPC names it
        self, request: query_service_pb2.BatchGetStatesRequest, context: Context
    ) -> query_service_pb2.BatchGetStatesResponse:
        """Answers with what is newer."""
        await self._begin("BatchGetStates", context)
        response = query_service_pb2.BatchGetStatesResponse()
        for index, query in enumerate(request.keys):
            key = StoreKey(request.store, query.key.group, query.key.sort, query.key.member)
            self.asked[key] += 1
            held = self.held.get(key) or query_pb2.Absence(position=Position(epoch=self.epoch, offset=self.offset))
            after = query.after if query.HasField("after") else Position()
            if after.epoch == held.position.epoch and after.offset >= held.position.offset:
                continue
            result = response.results.add(index=index)
            if isinstance(held, query_pb2.State):
                result.state.CopyFrom(held)
            else:
                result.absence.CopyFrom(held)
        return response

    async def ScanStates(  # noqa: N802  gRPC names it
        self, request: query_service_pb2.ScanStatesRequest, context: Context
    ) -> query_service_pb2.ScanStatesResponse:
        """Answers with a page; the token is the number of rows before it."""
        await self._begin("ScanStates", context)
        if request.page_token and not request.page_token.isdigit():
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, "page_token is not one of ours")
        rows = sorted(
            (key, state)
            for key, state in self.held.items()
            if isinstance(state, query_pb2.State)
            and key[:2] == (request.store, request.group)
            and request.sort_from <= key.sort
            and (not request.sort_to or key.sort < request.sort_to)
        )
        if request.reverse:
            rows.reverse()
        start = int(request.page_token or 0)
        end = start + (request.page_size or 100)
        states = [state for _, state in rows[start:end]]
        token = str(end) if end < len(rows) else ""
        return query_service_pb2.ScanStatesResponse(states=states, next_page_token=token)

    async def ListVersions(  # noqa: N802  gRPC names it
        self, _: query_service_pb2.ListVersionsRequest, context: Context
    ) -> query_service_pb2.ListVersionsResponse:
        """Answers that nothing keeps versions; the edge never asks."""
        await context.abort(grpc.StatusCode.FAILED_PRECONDITION, "no store keeps versions")
        raise AssertionError("abort raises")

    async def ListShards(  # noqa: N802  gRPC names it
        self, _: query_service_pb2.ListShardsRequest, context: Context
    ) -> query_service_pb2.ListShardsResponse:
        """Answers that this instance owns everything."""
        await self._begin("ListShards", context)
        replica = query_pb2.Replica(instance="fake", address=self.address, rank=1, serving=True)
        message = "statecast.orders.v1.Order"
        stores = [query_pb2.Store(store=name, topic=name, message=message, partitions=4) for name in STORES]
        shards = [query_pb2.Shard(store=name, partition=n, replicas=[replica]) for name in STORES for n in range(4)]
        return query_service_pb2.ListShardsResponse(stores=stores, shards=shards)

    async def _begin(self, method: str, context: Context) -> None:
        self.calls[method] += 1
        self._at_once += 1
        self.most_at_once = max(self.most_at_once, self._at_once)
        await asyncio.sleep(self.delay)
        self._at_once -= 1
        if self.failing is not None:
            await context.abort(self.failing, "scripted to fail")

    def _next(self) -> Position:
        self.offset += 1
        return Position(epoch=self.epoch, offset=self.offset)


def _key(key: StoreKey) -> StateKey:
    return StateKey(group=key.group, sort=key.sort, member=key.member)


class Clock:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Recorder:
    """A subscriber that remembers what it is told, as words."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def started(self, _: Subscription, recovered: bool) -> None:
        """A word for how it began."""
        self.told.append("recovered" if recovered else "snapshot")

    def changed(self, _: Subscription, version: Version, snapshot: bool) -> None:
        """The offset, or a word for no row; with a ! when it is the beginning."""
        what = version.position.offset if version.row is not None else "deleted" if version.deleted else "unknown"
        self.told.append(f"{what}{'!' if snapshot else ''}")

    def refused(self, _: Subscription, error: RequestError) -> None:
        """The code and the reference."""
        self.told.append(f"{error.code} {error.reference}")

    def delayed(self, _: Subscription) -> None:
        """One word."""
        self.told.append("delayed")


async def until(condition: Callable[[], bool]) -> None:
    """Polls until the condition holds; raises TimeoutError when it does not within half a minute."""
    async with asyncio.timeout(30):
        while not condition():  # noqa: ASYNC110  whatever a test waits for cannot set an event
            await asyncio.sleep(0.005)


SECRET = "throw-away-secret"  # noqa: S105  tests only
PATIENT = {
    "port": 0,
    "gateway_secret": SECRET,
    "drain_window_ms": 0,
    # A busy machine is not an outage.
    "query_timeout_ms": 20_000,
    "unavailable_after_ms": 60_000,
}


class RunningEdge:
    """A real edge on a free port before a FakeQueryService: `async with RunningEdge(max_sockets=1) as edge`."""

    def __init__(self, **settings: Any) -> None:
        self.query = FakeQueryService()
        self._settings = settings

    async def __aenter__(self) -> "RunningEdge":
        address = await self.query.start()
        given = Settings.model_validate(PATIENT | {"query_addresses": (address,)} | self._settings)
        listener = listen(given)
        self.address = f"127.0.0.1:{listener.getsockname()[1]}"
        self.parts = build(given, stores.read(given.stores))
        self._task = asyncio.create_task(run(self.parts, listener))
        await until(lambda: self.parts.server.started and self.parts.shard_watch.reason is None)
        return self

    async def __aexit__(self, *_: object) -> None:
        self.parts.server.handle_exit(15, None)
        await self._task
        await self.query.stop()

    def headers(self, consumer: str = "customer-0001", groups: str = "customers") -> dict[str, str]:
        """What the gateway would send."""
        return {"X-Gateway-Secret": SECRET, "X-Consumer-Custom-ID": consumer, "X-Consumer-Groups": groups}

    def socket(self, path: str = "/update/orders", consumer: str = "customer-0001", **options: Any) -> connect:
        """Connects a client as the gateway would."""
        return connect(f"ws://{self.address}{path}", additional_headers=self.headers(consumer), **options)
