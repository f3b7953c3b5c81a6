"""One broker, one keyed topic full of rows, and the instances of the query-service that a measurement asks for."""

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import grpc

from bench.clusters import run_only
from statecast.query.v1.query_service_pb2 import ListShardsRequest
from statecast.query.v1.query_service_pb2_grpc import QueryServiceStub
from testkit import waiting
from testkit.broker import running_broker
from testkit.keyed_topic_writers import row_key, row_record, write_rows
from testkit.query_cluster import PARTITIONS, REPLICAS, STORE, QueryCluster, QueryInstance, query_cluster

NAMES = ("query-1", "query-2")
TIMEOUT_S = 300.0
SESSION_TIMEOUT_MS = 6_000
PAUSE_S = 0.02


class QueryRig:
    """Instances that keep their rows from one measurement to the next; `names` are those that share the reads."""

    def __init__(self, cluster: QueryCluster, rows: int, names: Sequence[str] = NAMES) -> None:
        self.cluster = cluster
        self.rows = rows
        self.names = tuple(names)
        self.sequence = 0
        self.write(rows)
        self.record_bytes = len(row_key(0)) + len(row_record(0, 1))

    def write(self, count: int) -> None:
        """Writes the first rows anew, with the next sequence."""
        self.sequence += 1
        write_rows(self.cluster.bootstrap, self.cluster.topic, count, self.sequence)

    def only(self, *names: str) -> list[QueryInstance]:
        """Runs these instances and no others, and returns them when each serves all that it should."""
        instances = run_only(self.cluster, names, TIMEOUT_S)
        wait_until(lambda: all(instance.unready_reason() is None for instance in instances))
        wait_until(lambda: all(self._serves(instance.address, {*names}) for instance in instances))
        return instances

    def _serves(self, address: str, names: set[str]) -> bool:
        """Returns whether enough of these serve each partition, as the instance at an address sees it."""
        with grpc.insecure_channel(address) as channel:
            stub: Any = QueryServiceStub(channel)
            try:
                shards = stub.ListShards(ListShardsRequest(store=STORE), timeout=10).shards
            except grpc.RpcError:
                return False
        served = [{replica.instance for replica in shard.replicas if replica.serving} & names for shard in shards]
        enough = min(REPLICAS, len(names))
        return len(served) == self.cluster.partitions and all(len(each) == enough for each in served)


def wait_until(condition: Callable[[], object], interval_s: float = PAUSE_S) -> None:
    """Waits until the condition holds, with a time-out of minutes, as measurements need."""
    waiting.wait_until(condition, "the instances are not as they should be", TIMEOUT_S, interval_s)


@contextmanager
def query_rig(rows: int, names: Sequence[str] = NAMES, partitions: int = PARTITIONS) -> Iterator[QueryRig]:
    """Yields a rig on a broker of its own; all of it ends with the block."""
    with tempfile.TemporaryDirectory(prefix="statecast-bench-") as temporary:
        directory = Path(temporary)
        with running_broker(directory / "broker") as broker:
            topic = {"message.timestamp.type": "LogAppendTime"}
            cluster_of = partial(query_cluster, session_timeout_ms=SESSION_TIMEOUT_MS)
            with cluster_of(broker.bootstrap, directory / "query", topic, partitions=partitions) as cluster:
                yield QueryRig(cluster, rows, names)
