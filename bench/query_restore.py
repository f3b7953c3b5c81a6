"""How fast an instance takes its rows from the topic, with an empty disk or after a freeze, and from a peer."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from threading import Event
from typing import Any

import grpc

from bench.query_rig import NAMES, QueryRig, wait_until
from bench.results import percentiles
from statecast.query.v1.query_service_pb2 import GetStateRequest
from statecast.query.v1.query_service_pb2_grpc import QueryServiceStub
from statecast.shard.v1.shard_service_pb2 import ListPartitionsRequest, Partition
from statecast.shard.v1.shard_service_pb2_grpc import ShardServiceStub
from statecast.state.v1.state_pb2 import StateKey
from testkit.background import act_at_rate, in_background
from testkit.keyed_topic_writers import row_key
from testkit.query_cluster import PARTITIONS, STORE, QueryInstance

BACKLOG = 300_000
LOOK_EVERY_S = 0.02
CALM_S = 5.0
GETS_PER_S = 200
TICK_S = 0.005


def restore(rig: QueryRig) -> dict[str, float]:
    """Starts an instance with an empty disk, alone, until it serves every row.

    `restore_rows_per_s` and `restore_mb_per_s` (keys and values, as they lie on the topic) count from the last
    look at which it had not opened any partition until it serves all; `restore_start_ms` from the start of the process.
    """
    [instance] = rig.only("query-1")
    instance.drain(60)
    instance.wipe()
    return timed_start(rig, instance, PARTITIONS)


def timed_start(rig: QueryRig, instance: QueryInstance, partitions: int) -> dict[str, float]:
    """Starts an instance alone, until it serves so many partitions; the metrics are those of `restore`."""
    began = time.monotonic()
    instance.start()
    with grpc.insecure_channel(instance.shard_address) as channel:
        stub: Any = ShardServiceStub(channel)
        looks = [began]

        def opened() -> bool:
            looks.append(time.monotonic())
            return len(_partitions(stub)) > 0

        wait_until(opened, LOOK_EVERY_S)
        wait_until(lambda: sum(each.serving for each in _partitions(stub)) == partitions, LOOK_EVERY_S)
        served = time.monotonic()
        records = _applied(_partitions(stub))
    return {
        "restore_rows_per_s": round(records / (served - looks[-2])),
        "restore_mb_per_s": round(records * rig.record_bytes / 1e6 / (served - looks[-2]), 1),
        "restore_start_ms": round((served - began) * 1000),
        "rss_mb": round(instance.rss_bytes / 1e6, 1),
    }


def seed(rig: QueryRig) -> dict[str, float]:
    """Starts an instance with an empty disk beside one that has every row, until it serves every row.

    `seed_ms` counts from the first look at which it has joined the group, as the other one sees it, until it serves
    all; `seed_start_ms` from the start of the process. `seed_giver_ms` are gets at the other one meanwhile, one after
    the other at a steady rate, and `seed_giver_ms_….calm` the same before.
    """
    giver, taker = rig.only(*NAMES)
    taker.drain(60)
    taker.wipe()
    with _gets_at(giver.address) as calm:
        time.sleep(CALM_S)
    with grpc.insecure_channel(taker.shard_address) as channel, _gets_at(giver.address) as during:
        stub: Any = ShardServiceStub(channel)
        began = time.monotonic()
        taker.start()
        wait_until(lambda: giver.metric("query_service_members") == len(NAMES), LOOK_EVERY_S)
        joined = time.monotonic()
        wait_until(lambda: sum(each.serving for each in _partitions(stub)) == PARTITIONS, LOOK_EVERY_S)
        served = time.monotonic()
    return {
        "seed_ms": round((served - joined) * 1000),
        "seed_start_ms": round((served - began) * 1000),
        "seed_mb": round(taker.metric("query_service_seed_bytes_total") / 1e6, 1),
        **percentiles("seed_giver_ms", during),
        **percentiles("seed_giver_ms", calm, ".calm"),
    }


@contextmanager
def _gets_at(address: str) -> Iterator[list[float]]:
    """Yields the times of gets of one row at an instance, in milliseconds, until the block ends."""
    times_ms: list[float] = []

    def read(done: Event) -> None:
        with grpc.insecure_channel(address) as channel:
            stub: Any = QueryServiceStub(channel)
            request = GetStateRequest(store=STORE, key=StateKey(group=row_key(0)))
            act_at_rate(done, GETS_PER_S, TICK_S, lambda _: times_ms.append(_time_ms(stub, request)), lambda: None)

    with in_background(read):
        yield times_ms


def _time_ms(stub: Any, request: GetStateRequest) -> float:
    began = time.perf_counter()
    stub.GetState(request, timeout=60)
    return (time.perf_counter() - began) * 1000


def apply(rig: QueryRig) -> dict[str, float]:
    """Freezes an instance that serves, writes many rows anew, and lets it go on: the rate at which it catches up."""
    count = min(BACKLOG, rig.rows)
    [instance] = rig.only("query-1")
    with grpc.insecure_channel(instance.shard_address) as channel:
        stub: Any = ShardServiceStub(channel)
        due = _applied(_partitions(stub)) + count
        instance.pause()
        try:
            rig.write(count)
        finally:
            instance.resume()
        began = time.monotonic()
        wait_until(lambda: _applied(_partitions(stub)) >= due, LOOK_EVERY_S)
        seconds = time.monotonic() - began
    return {"apply_rows_per_s": round(count / seconds)}


def _partitions(stub: Any) -> Sequence[Partition]:
    """Returns the instance's partitions; none while it cannot be reached."""
    try:
        return list(stub.ListPartitions(ListPartitionsRequest(), timeout=60).partitions)
    except grpc.RpcError as error:
        if error.code() != grpc.StatusCode.UNAVAILABLE:
            raise
        return []


def _applied(partitions: Sequence[Partition]) -> int:
    return sum(each.freshness.current_through.offset + 1 for each in partitions)
