"""A scripted query service in memory that speaks real gRPC, and a stand-in for Kafka that writes to it."""

import asyncio
import json
from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Self

import grpc
import grpc.aio
import yaml
from google.protobuf.message import Message
from google.protobuf.struct_pb2 import Value
from typing_extensions import override

from query_service.server.shard_listing import listed
from query_service.settings import SHIPPED_STORES as SHIPPED_FILE
from query_service.storage.stores_file import StoreDefinition, read_stores
from statecast.descriptors import MessageTypes
from statecast.json_documents import document_of
from statecast.partitioning import PARTITIONERS, partition_of
from statecast.query.v1 import query_pb2, query_service_pb2
from statecast.query.v1.query_service_pb2_grpc import QueryServiceServicer, add_QueryServiceServicer_to_server
from statecast.state.v1.state_pb2 import Position, StateKey
from ws_edge.channels import EDGE_STORES
from ws_edge.channels.kafka_writer import Rows, Writer
from ws_edge.errors import UnavailableError
from ws_edge.model.listed_stores import store_of
from ws_edge.model.states import StoreKey
from ws_edge.model.stores import Store

Context = grpc.aio.ServicerContext[Message, Message]
SHIPPED_DEFINITIONS = {store.name: store for store in read_stores(SHIPPED_FILE)}


def definitions(text: str) -> dict[str, StoreDefinition]:
    """Returns the stores of a text in the form of a stores file, each of a topic with its name."""
    entries = yaml.safe_load(text)["stores"]
    return {each["name"]: StoreDefinition.model_validate({"topic": each["name"], **each}) for each in entries}


def edge_stores(stores: Mapping[str, StoreDefinition], types: MessageTypes | None = None) -> dict[str, Store]:
    """Returns stores of the query service as the edge shows them."""
    types = types or MessageTypes.read()
    clients = (store for store in stores.values() if store.name not in EDGE_STORES)
    return {store.name: store_of(listed(store), types) for store in clients}


SHIPPED_STORES = edge_stores(SHIPPED_DEFINITIONS)
"""The shipped stores as the edge shows them."""


class FakeQueryService(QueryServiceServicer):
    """Scripted: `put` and `delete` change it, `failing` makes every call fail, `delay` makes it slow.

    `async with FakeQueryService() as service` listens on a free port.
    """

    def __init__(self, epoch: int = 7) -> None:
        self.epoch = epoch
        self.offset = 0
        self.held: dict[StoreKey, query_pb2.State | query_pb2.Absence] = {}
        self.failing: grpc.StatusCode | None = None
        self.refused = frozenset[StoreKey]()
        """The keys for which the service refuses a batch."""
        self.too_large = frozenset[StoreKey]()
        """The keys with rows that are larger than an answer."""
        self.delay = 0.0
        self.asked: Counter[StoreKey] = Counter()
        self.calls: Counter[str] = Counter()
        self.ranges: Counter[str] = Counter()
        self.recent_since = 0
        self.has_crc32 = False
        """Whether the partitioner is librdkafka's."""
        self.partitions = 4
        self.stores = SHIPPED_DEFINITIONS
        """The stores that this instance has beside those of the edges; `define` replaces them."""
        self.is_older = False
        """Whether this instance is of before it said who may read a store."""
        self.lag_ms = 0
        """How far this instance says that it lags."""
        self.ahead: dict[int, int] = {}
        """The applied offset of each partition that is further than the others."""
        self.most_at_once = 0
        self.waiting = 0
        self.most_waiting = 0
        self.held_keys = 0
        self._changed = asyncio.Event()
        self._at_once = 0
        self.address = ""

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def start(self, address: str = "127.0.0.1:0", credentials: grpc.ServerCredentials | None = None) -> str:
        """Listens and returns the address, with TLS if there are `credentials`; may be called again after `stop`."""
        self._server = grpc.aio.server(options=[("grpc.so_reuseport", 0)])
        add_QueryServiceServicer_to_server(self, self._server)
        if credentials is None:
            port = self._server.add_insecure_port(address)
        else:
            port = self._server.add_secure_port(address, credentials)
        await self._server.start()
        self.address = f"127.0.0.1:{port}"
        return self.address

    async def stop(self) -> None:
        """Stops at once."""
        await self._server.stop(None)

    def define(self, text: str) -> None:
        """Has other stores from now on, those of a text in the form of a stores file."""
        self.stores = definitions(text)

    def put(self, key: StoreKey, row: Message, commit: datetime | None = None) -> int:
        """Applies a row, a Value as JSON, and returns its offset."""
        payload = json.dumps(document_of(row)).encode() if isinstance(row, Value) else row.SerializeToString()
        state = query_pb2.State(key=_key(key), position=self._next(), payload=payload)
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
        """Answers with the newer states, at once or within `max_wait`."""
        await self._begin("BatchGetStates", context)
        if request.bounds.HasField("max_lag_ms") and self.lag_ms > request.bounds.max_lag_ms:
            await context.abort(grpc.StatusCode.FAILED_PRECONDITION, "scripted to lag")
        keys = [StoreKey(request.store, each.key.group, each.key.sort, each.key.member) for each in request.keys]
        self.asked.update(keys)
        if not self.refused.isdisjoint(keys):
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, "scripted to refuse the batch")
        self.ranges.update(each.group for each in request.ranges)
        response = self._newer(request)
        if not (response.results or response.ranges) and request.HasField("max_wait"):
            self._wait(1, len(request.keys))
            try:
                async with asyncio.timeout(request.max_wait.ToNanoseconds() / 1e9):
                    while not (response.results or response.ranges):
                        await self._changed.wait()
                        response = self._newer(request)
            except TimeoutError:
                return response
            finally:
                self._wait(-1, -len(request.keys))
        return response

    def _wait(self, calls: int, keys: int) -> None:
        self.waiting += calls
        self.held_keys += keys
        self.most_waiting = max(self.most_waiting, self.waiting)

    def _newer(self, request: query_service_pb2.BatchGetStatesRequest) -> query_service_pb2.BatchGetStatesResponse:
        response = query_service_pb2.BatchGetStatesResponse()
        for index, query in enumerate(request.keys):
            key = StoreKey(request.store, query.key.group, query.key.sort, query.key.member)
            held = self.held.get(key) or query_pb2.Absence(position=Position(epoch=self.epoch, offset=self.offset))
            after = query.after if query.HasField("after") else Position()
            is_known = key in self.held and after.offset < held.position.offset
            if after.epoch == held.position.epoch and not is_known:
                continue
            result = response.results.add(index=index)
            if key in self.too_large:
                result.error.code, result.error.message = grpc.StatusCode.RESOURCE_EXHAUSTED.value[0], "too large"
            elif isinstance(held, query_pb2.State):
                result.state.CopyFrom(held)
            else:
                result.absence.CopyFrom(held)
        for index, range_query in enumerate(request.ranges):
            self._fill_range(request.store, range_query, response, index)
        for n in range(self.partitions):
            position = Position(epoch=self.epoch, offset=self.ahead.get(n, self.offset))
            ranges = [index for index, each in enumerate(request.ranges) if self.partition_of(each.group) == n]
            keys = [index for index, each in enumerate(request.keys) if self.partition_of(each.key.group) == n]
            named = response.freshness.add(partition=n, current_through=position, lag_ms=self.lag_ms)
            named.keys.extend(keys)
            named.ranges.extend(ranges)
        return response

    def partition_of(self, group: str) -> int:
        """Returns the partition of a group."""
        return partition_of(group, self.partitions, PARTITIONERS["crc32" if self.has_crc32 else "murmur2"])

    def _fill_range(
        self,
        store: str,
        query: query_pb2.RangeQuery,
        response: query_service_pb2.BatchGetStatesResponse,
        index: int,
    ) -> None:
        """Knows the changes after `recent_since`; an older position is answered with the whole range."""
        knows = query.HasField("after") and query.after.epoch == self.epoch and query.after.offset >= self.recent_since
        whole = query.whole or not knows
        rows = self._range(store, query.group, query.sort_from, query.sort_to, query.reverse)
        newer = [(key, held) for key, held in rows if not knows or held.position.offset > query.after.offset]
        if not whole and not newer:
            return
        result = response.ranges.add(index=index, whole=whole, removals_complete=knows)
        result.position.epoch, result.position.offset = self.epoch, self.offset
        states = [held for _, held in (rows if whole else newer) if isinstance(held, query_pb2.State)]
        result.more = whole and len(states) > query.limit
        result.states.extend(states[: query.limit] if whole else states)
        for key, held in newer:
            if knows and isinstance(held, query_pb2.Absence):
                result.removals.add(key=_key(key), absence=held)

    def _range(
        self, store: str, group: str, sort_from: str, sort_to: str, reverse: bool
    ) -> list[tuple[StoreKey, query_pb2.State | query_pb2.Absence]]:
        rows = [
            (key, held)
            for key, held in self.held.items()
            if key.store == store
            and group in ("", key.group)
            and sort_from <= key.sort
            and (not sort_to or key.sort < sort_to)
        ]
        return sorted(rows, key=lambda row: row[0], reverse=reverse)

    async def ScanStates(  # noqa: N802  gRPC names it
        self, request: query_service_pb2.ScanStatesRequest, context: Context
    ) -> query_service_pb2.ScanStatesResponse:
        """Answers with a page of a group, or of many; the token names the last row."""
        await self._begin("ScanStates", context)
        entries = self._range(request.store, request.group, request.sort_from, request.sort_to, request.reverse)
        rows = [
            held
            for key, held in entries
            if isinstance(held, query_pb2.State)
            and request.group_from <= key.group
            and (not request.group_to or key.group < request.group_to)
        ]
        names = ["", *("/".join((row.key.group, row.key.sort, row.key.member)) for row in rows)]
        start = names.index(request.page_token)
        end = start + (request.page_size or 100)
        states = rows[start:end]
        token = names[end] if end < len(rows) else ""
        response = query_service_pb2.ScanStatesResponse(states=states, next_page_token=token)
        response.freshness.current_through.CopyFrom(Position(epoch=self.epoch, offset=self.offset))
        response.freshness.lag_ms = self.lag_ms
        return response

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
        own = {name: SHIPPED_DEFINITIONS[name] for name in EDGE_STORES}
        stores = [listed(store) for store in {**self.stores, **own}.values()]
        for store in stores:
            store.partitions = self.partitions
            if self.has_crc32:
                store.partitioner = query_pb2.PARTITIONER_CRC32
            if self.is_older:
                store.ClearField("readers")
        shards = [
            query_pb2.Shard(store=store.store, partition=n, replicas=[replica])
            for store in stores
            for n in range(self.partitions)
        ]
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
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()
        return Position(epoch=self.epoch, offset=self.offset)


class FakeWriter(Writer):
    """Stands in for Kafka: each written record is in the query service at once. It fails as lookups do."""

    def __init__(self, service: FakeQueryService) -> None:
        self._service = service

    @override
    async def write(self, rows: Rows) -> int:
        if self._service.failing is not None:
            raise UnavailableError("scripted to fail")
        assert len({key[:2] for key in rows}) == 1, "all are of one group"
        for key, row in rows.items():
            if row is None:
                self._service.delete(key)
            else:
                self._service.put(key, row)
        return self._service.offset


def _key(key: StoreKey) -> StateKey:
    return StateKey(group=key.group, sort=key.sort, member=key.member)
