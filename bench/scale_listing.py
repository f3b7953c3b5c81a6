"""Measures the bytes with which idle instances tell each other how far their partitions are."""

import asyncio
import math
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from prometheus_client import CollectorRegistry

from bench.scale_sizes import Sizes
from query_service.cluster.shard_map import Member, ShardMap
from query_service.cluster.view import View
from query_service.metrics import Metrics
from query_service.reads.local import LocalReads
from query_service.reads.request_checks import Limits
from query_service.server.methods import ShardMethods
from query_service.server.partition_listing import PartitionListing
from query_service.server.peers import Peers, interval_s
from query_service.storage.changes import Changes
from query_service.storage.checkpoints import Checkpoints, Pace
from query_service.storage.engine import MemoryEngine
from query_service.storage.progress import Progress
from query_service.storage.replica import Replica
from query_service.storage.store import PartitionStore
from query_service.storage.store_directory import Topic
from testkit.query_cluster import REPLICAS
from testkit.query_service import call_limits, serve, store_definition
from testkit.relay import Relay

_ENDS_S = 0.25
_REST_S = 10.0


async def listing(sizes: Sizes) -> dict[str, float]:
    """Returns the bytes a second of all instances: one pair is measured, and multiplied by the pairs a second.

    The instance that is asked holds its share of the partitions.
    """
    instances, stores = sizes.instances, sizes.stores
    me = Member("query-service-0.query-service.statecast.svc.cluster.local", "h:1", "h:2", 1)
    metrics, clock = Metrics(CollectorRegistry()), time.monotonic
    definitions = [store_definition(f"store-{number:03d}") for number in range(stores)]
    view = View(me, definitions, REPLICAS)
    topic = Topic("topic", "id", 1 << 62, sizes.partitions)
    view.topics, view.shard_map = {"topic": topic}, ShardMap(frozenset({me}), REPLICAS)
    for number in range(math.ceil(min(REPLICAS, instances) * stores * sizes.partitions / instances)):
        definition, partition = definitions[number % stores], number // stores
        progress = Progress(1_000_000, 2.0, clock)
        store, changes = PartitionStore(MemoryEngine(), definition), Changes(asyncio.get_running_loop(), lambda: 0, -1)
        replica = Replica(definition, topic, partition, store, progress, changes, metrics, lambda: 0)
        view.replicas[definition.name, partition] = replica
    with TemporaryDirectory() as directory:
        checkpoints = Checkpoints(Path(directory), 1, metrics, clock)
        local = LocalReads(view, Limits(1000, 100, 100, 100, 1 << 20), clock)
        limits = call_limits(metrics, clock, 1 << 30)
        server, address = serve(
            ShardMethods(local, local.limits, limits, PartitionListing(view), checkpoints, Pace(1e9, clock)).methods()
        )
        await server.start()
        async with Relay(address) as relay:
            asking = Peers(1.0, 1.0, clock)
            await asking.keep([Member(me.instance, relay.address, relay.address, 1)])
            await _ends(view, 2.0)
            began, at = relay.passed_bytes, clock()
            await _ends(view, _REST_S)
            bytes_per_s = (relay.passed_bytes - began) / (clock() - at)
            await asking.keep(())
        await server.stop(0)
    peers = instances - 1
    return {"listing_bytes_per_s": round(bytes_per_s * instances * peers / interval_s(peers))}


async def _ends(view: View, seconds: float) -> None:
    """Reports unchanged end offsets of all partitions, as the broker does, for so many seconds."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        for replica in view.replicas.values():
            replica.note_end_offset(1_000_000, time.monotonic())
        await asyncio.sleep(_ENDS_S)
