"""A query service without Kafka: real stores on disk, real gRPC servers, alone in its group."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc
from google.protobuf import json_format
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from prometheus_client import CollectorRegistry

from query_service.cluster.shard_map import Member, ShardMap
from query_service.cluster.view import View
from query_service.instance import replica_factory, servers_of, wall_ms
from query_service.metrics import Metrics
from query_service.reads.status import STATUS
from query_service.server.peers import Peers
from query_service.settings import Settings
from query_service.storage.checkpoints import Checkpoints
from query_service.storage.progress import EndOffset
from query_service.storage.replica import Replica
from query_service.storage.steady_clock import SteadyClock
from query_service.storage.store_directory import Topic
from query_service.storage.stores_file import StoreDefinition
from rigs.loop import Loop
from statecast.orders.v1.order_pb2 import Order
from statecast.query.v1 import query_service_pb2 as query
from statecast.shard.v1 import shard_service_pb2 as shard
from testkit.ports import free_ports
from testkit.query_service import FakeRecord, put, store_definition, tombstone
from ws_edge.channels import CHANNELS, REVOCATIONS

QUERY = query.DESCRIPTOR.services_by_name["QueryService"]
SHARD = shard.DESCRIPTOR.services_by_name["ShardService"]
DOCUMENTED = frozenset(STATUS.values())

EPOCH = 7
PARTITIONS = 4
GROUP = "customer-0001"
ORDER = "order-1"
STORES = (
    store_definition("orders-by-key", topic="keyed", readers={"field": "customer_id"}, history={"versions": 3}),
    store_definition("orders-by-customer", topic="members", history={"age": "1d"}),
    store_definition("orders-by-item", topic="items", engine="memory"),
    store_definition("plain", topic="plain", message="bytes", format="plain", retain="24h", history={"versions": 2}),
    store_definition("crc", topic="crc", message="json", format="plain", partitioner="crc32", history={"age": "1h"}),
    # Those of the edges, which every query service has.
    store_definition(
        CHANNELS.name, topic="channels", message=CHANNELS.kind, format="plain", keeps="members", retain="48h"
    ),
    store_definition(REVOCATIONS.name, topic="revocations", message=REVOCATIONS.kind, format="plain"),
)
LIMITS = {
    "max_batch_keys": 100,
    "max_page_size": 50,
    "default_page_size": 5,
    "max_wait_ms": 20,
    "max_request_bytes": 1 << 20,
    "max_answer_bytes": 1 << 16,
    "recent_changes": 20,
    # Short, so that requests that cannot be answered in time, as for a position that is never reached, delay nothing.
    "call_timeout_ms": 100,
    "max_call_ms": 100,
}


class RunningQueryService:
    """`async with RunningQueryService(directory, stores) as service`: its ports are `address` and `shard_address`."""

    def __init__(self, directory: Path, stores: Sequence[StoreDefinition], **more: object) -> None:
        """Makes the parts, with `more` settings; nothing listens yet. Needs a running event loop."""
        port, shard_port = free_ports(2)
        fields = {"port": port, "shard_port": shard_port, "data_directory": directory, **LIMITS, **more}
        settings = Settings.model_validate(fields)
        self.address, self.shard_address = settings.address, settings.shard_address
        self.registry = CollectorRegistry()
        metrics = Metrics(self.registry)
        me = Member("query-1", self.address, self.shard_address, 1)
        view = View(me, stores, 1)
        view.topics = {store.topic: Topic(store.topic, "id", EPOCH, PARTITIONS) for store in stores}
        view.shard_map = ShardMap(frozenset({me}), 1)
        clock = SteadyClock(wall_ms, time.monotonic, 0.0)
        self._view = view
        self._factory = replica_factory(settings, lambda _: settings.resume_limit_s * 1000, metrics, view, clock)
        checkpoints = Checkpoints(directory, settings.max_seeds, metrics, time.monotonic)
        self._servers = servers_of(settings, view, Peers(1.0, 1.0, time.monotonic), metrics, checkpoints)

    async def __aenter__(self) -> "RunningQueryService":
        for (name, definition), partition in (
            (store, partition) for store in self._view.stores.items() for partition in range(PARTITIONS)
        ):
            topic, end = self._view.topics[definition.topic], EndOffset(0, time.monotonic())
            self._view.replicas[name, partition] = self._factory.open(definition, topic, partition, end)
        await self._servers.start()
        self.public = grpc.aio.insecure_channel(self.address)
        self.internal = grpc.aio.insecure_channel(self.shard_address)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.public.close()
        await self.internal.close()
        await self._servers.stop(0)
        for replica in self._view.replicas.values():
            replica.store.close()

    async def outcome(
        self, channel: grpc.aio.Channel, name: str, request: Message | bytes
    ) -> Message | grpc.StatusCode:
        """Returns the answer of a call, which JSON can tell, or the status that it fails with.

        Raises AssertionError for one that the README does not name, and for one that does not say why.
        """
        method = (SHARD if channel is self.internal else QUERY).methods_by_name[name]
        encoded = request if isinstance(request, bytes) else request.SerializeToString()
        call: Any = channel.unary_unary(
            f"/{method.containing_service.full_name}/{name}",
            response_deserializer=GetMessageClass(method.output_type).FromString,
        )
        try:
            answer: Message = await call(encoded)
        except grpc.aio.AioRpcError as error:
            status, details = error.code(), error.details()
        else:
            json_format.MessageToJson(answer)
            return answer
        assert status in DOCUMENTED, f"{status}: {details}"
        assert details
        return status

    def replica_of(self, store: str, group: str) -> Replica:
        """Returns the replica of the partition in which the group of a store lies."""
        return self._view.replicas[self._view.shard_of(store, group)]

    def emptied(self, store: str, group: str) -> Replica:
        """As `replica_of`, after it has lost all that it had."""
        replica = self.replica_of(store, group)
        self._factory.reopen(replica, None)
        replica.progress.note_end_offset(0, time.monotonic())
        return replica

    def fill(self) -> None:
        """Applies rows to STORES, newer versions of some, and deletions."""
        order = Order(order_id=ORDER, customer_id=GROUP).SerializeToString()
        for store in ("orders-by-key", "orders-by-customer", "orders-by-item"):
            keys = [ORDER] if store == "orders-by-key" else [f"{GROUP}\0{sort:02}\0{ORDER}" for sort in range(20)]
            records = [put(key, 1, offset, order) for offset, key in enumerate(keys)]
            records += [put(key, 2, len(keys) + offset, order) for offset, key in enumerate(keys)]
            records.append(tombstone(keys[-1] if len(keys) > 1 else "gone", 3, len(records)))
            self.replica_of(store, keys[0].partition("\0")[0]).apply(records, len(records))
        now_ms = time.time_ns() // 1_000_000
        for store in ("plain", "crc"):
            plain = [FakeRecord(ORDER.encode(), b"{}", offset, record_ms=now_ms) for offset in range(5)]
            self.replica_of(store, ORDER).apply(plain, len(plain))


@contextmanager
def query_service(
    loop: Loop, directory: Path, stores: Sequence[StoreDefinition], **settings: object
) -> Iterator[RunningQueryService]:
    """Yields a query service that runs in the loop for the length of a block."""

    async def make() -> RunningQueryService:
        return RunningQueryService(directory, stores, **settings)

    with loop.entered(loop.run(make())) as service:
        yield service
