"""One broker, one keyed topic full of rows, and the instances that a measurement asks for."""

import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc
import psutil
from drivers.own_broker import own_broker
from drivers.query_cluster import PARTITIONS, STORE, QueryCluster, query_cluster
from drivers.query_instance import QueryInstance

from bench.query_rows import encoded, key_of, write
from statecast.query.v1.query_service_pb2 import ListShardsRequest
from statecast.query.v1.query_service_pb2_grpc import QueryServiceStub

NAMES = ("query-1", "query-2")
PATIENCE_S = 300.0
SESSION_TIMEOUT_MS = 6_000
PAUSE_S = 0.02


class QueryRig:
    """The instances keep what they have from one measurement to the next."""

    def __init__(self, cluster: QueryCluster, rows: int) -> None:
        """Fills the topic."""
        self.cluster = cluster
        self.rows = rows
        self.sequence = 0
        self.write(rows)
        self.record_bytes = len(key_of(0)) + len(encoded(0, 1))

    def write(self, count: int) -> None:
        """Writes the first rows anew, with the next sequence."""
        self.sequence += 1
        write(self.cluster.bootstrap, self.cluster.topic, count, self.sequence)

    def only(self, *names: str) -> list[QueryInstance]:
        """Runs these instances and no others, and returns them when each serves all that it should."""
        for name, instance in self.cluster.instances.items():
            if name not in names and instance.running:
                instance.drain(PATIENCE_S)
        for name in names:
            if name not in self.cluster.instances:
                self.cluster.add(name)
            elif not self.cluster.instances[name].running:
                self.cluster.instances[name].start()
        instances = [self.cluster.instances[name] for name in names]
        wait_until(lambda: all(_is_ready(each) for each in instances))
        wait_until(lambda: all(self._serves(each.address, {*names}) for each in instances))
        return instances

    def _serves(self, address: str, names: set[str]) -> bool:
        """Whether all partitions are served by all of these, as the instance at an address sees it."""
        with grpc.insecure_channel(address) as channel:
            stub: Any = QueryServiceStub(channel)
            try:
                shards = stub.ListShards(ListShardsRequest(store=STORE), timeout=10).shards
            except grpc.RpcError:
                return False
        served = [{replica.instance for replica in shard.replicas if replica.serving} for shard in shards]
        return served == [names] * PARTITIONS


def rss_mb(instance: QueryInstance) -> float:
    """The memory that an instance has in use, in MB."""
    return round(psutil.Process(instance.pid).memory_info().rss / 1e6, 1)


def wait_until(condition: Any, pause_s: float = PAUSE_S) -> None:
    """Returns when the condition holds. Raises TimeoutError when that takes too long."""
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"the instances are not as they should be after {PATIENCE_S:g} s")
        time.sleep(pause_s)


@contextmanager
def query_rig(rows: int) -> Iterator[QueryRig]:
    """A rig on a broker of its own; all of it ends with the block."""
    with tempfile.TemporaryDirectory(prefix="statecast-bench-") as temporary:
        directory = Path(temporary)
        with own_broker(directory) as broker:
            topic = {"message.timestamp.type": "LogAppendTime"}
            settings = {"session_timeout_ms": SESSION_TIMEOUT_MS}
            with query_cluster(broker.bootstrap, directory / "query", topic, **settings) as cluster:
                yield QueryRig(cluster, rows)


def _is_ready(instance: QueryInstance) -> bool:
    try:
        instance.assert_ready()
    except AssertionError:
        return False
    return True
