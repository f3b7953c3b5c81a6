"""How fast an instance reads: from an empty disk, and a backlog while it serves; and what memory it then has."""

import time
from collections.abc import Sequence
from typing import Any

import grpc
from drivers.query_cluster import PARTITIONS

from bench.query_rig import QueryRig, rss_mb, wait_until
from statecast.shard.v1.shard_service_pb2 import ListPartitionsRequest, Partition
from statecast.shard.v1.shard_service_pb2_grpc import ShardServiceStub

BACKLOG = 300_000
LOOK_EVERY_S = 0.02


def restore(rig: QueryRig) -> dict[str, float]:
    """Starts an instance with an empty disk, alone, until it serves every row.

    `restore_rows_per_s` and `restore_mb_per_s` (keys and values, as they lie on the topic) count from the last
    look at which it had not opened any partition until it serves all; `restore_start_ms` from the start of the process.
    """
    [instance] = rig.only("query-1")
    instance.drain(60)
    instance.wipe()
    began = time.monotonic()
    instance.start()
    with grpc.insecure_channel(instance.shard_address) as channel:
        stub: Any = ShardServiceStub(channel)
        looks = [began]

        def opened() -> bool:
            looks.append(time.monotonic())
            return len(_partitions(stub)) > 0

        wait_until(opened, LOOK_EVERY_S)
        wait_until(lambda: sum(each.serving for each in _partitions(stub)) == PARTITIONS, LOOK_EVERY_S)
        served = time.monotonic()
        records = _applied(_partitions(stub))
    return {
        "restore_rows_per_s": round(records / (served - looks[-2])),
        "restore_mb_per_s": round(records * rig.record_bytes / 1e6 / (served - looks[-2]), 1),
        "restore_start_ms": round((served - began) * 1000),
        "rss_mb": rss_mb(instance),
    }


def apply(rig: QueryRig) -> dict[str, float]:
    """Freezes an instance that serves, writes many rows anew, and lets it go on: the rate at which it catches up."""
    count = min(BACKLOG, rig.rows)
    [instance] = rig.only("query-1")
    with grpc.insecure_channel(instance.shard_address) as channel:
        stub: Any = ShardServiceStub(channel)
        due = _applied(_partitions(stub)) + count
        instance.freeze()
        try:
            rig.write(count)
        finally:
            instance.thaw()
        began = time.monotonic()
        wait_until(lambda: _applied(_partitions(stub)) >= due, LOOK_EVERY_S)
        seconds = time.monotonic() - began
    return {"apply_rows_per_s": round(count / seconds)}


def _partitions(stub: Any) -> Sequence[Partition]:
    """What the instance holds; nothing while it cannot be reached."""
    try:
        found: Sequence[Partition] = stub.ListPartitions(ListPartitionsRequest(), timeout=60).partitions
    except grpc.RpcError as error:
        if error.code() != grpc.StatusCode.UNAVAILABLE:
            raise
        return ()
    return found


def _applied(partitions: Sequence[Partition]) -> int:
    return sum(each.freshness.current_through.offset + 1 for each in partitions)
