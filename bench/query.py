"""Measures the query-service alone, and writes bench/results/query.json: `make bench-query`."""

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from itertools import cycle
from threading import Event
from typing import Any

import grpc
import uvloop
from confluent_kafka import KafkaError, Message
from google.protobuf.duration_pb2 import Duration

from bench.lookups import measure_lookups
from bench.query_restore import BACKLOG, apply, restore, seed
from bench.query_rig import NAMES, QueryRig, query_rig, wait_until
from bench.results import Measured, Suite, measure_each, percentiles, repeat
from statecast.query.v1.query_pb2 import KeyQuery
from statecast.query.v1.query_service_pb2 import BatchGetStatesRequest, GetStateRequest, ScanStatesRequest
from statecast.query.v1.query_service_pb2_grpc import QueryServiceStub
from statecast.state.v1.state_pb2 import StateKey
from testkit.background import act_at_rate, in_background
from testkit.keyed_topic_writers import PAYLOAD_BYTES, producer, row_key, row_record
from testkit.query_cluster import PARTITIONS, REPLICAS, STORE

LOOKED_UP = 2_000
SCAN_S = 4.0
PAGE = 1_000


def gets(rig: QueryRig) -> dict[str, float]:
    """Single gets to the owner and through a forward, and batches of 500 keys, all changed or none."""
    first, _ = rig.only(*NAMES)
    return uvloop.run(measure_lookups(first.address, spread_keys(rig.rows, LOOKED_UP), STORE))


def scan(rig: QueryRig) -> dict[str, float]:
    """Scans the whole store in key order through one instance, then that instance's own rows, page by page."""
    first, _ = rig.only(*NAMES)
    return {
        "scan_rows_per_s": _rows_per_s(first.address, local_only=False),
        "scan_rows_per_s.local": _rows_per_s(first.address, local_only=True),
    }


def spread_keys(rows: int, count: int) -> list[str]:
    """Returns so many keys, from all over the rows."""
    return [row_key(number) for number in range(0, rows, max(1, rows // count))][:count]


def _rows_per_s(address: str, *, local_only: bool) -> float:
    began, rows = time.monotonic(), 0
    query = ScanStatesRequest(store=STORE, page_size=PAGE, local_only=local_only)
    with grpc.insecure_channel(address) as channel:
        stub: Any = QueryServiceStub(channel)
        while time.monotonic() - began < SCAN_S:
            page = stub.ScanStates(query, timeout=60)
            rows += len(page.states)
            query.page_token = page.next_page_token
    return round(rows / (time.monotonic() - began))


PROBES = 300
RATE = 1_000
TICK_S = 0.01


def freshness(rig: QueryRig) -> dict[str, float]:
    """From the broker's time of the append, in whole milliseconds, to the answer at the client."""
    first, _ = rig.only(*NAMES)
    with grpc.insecure_channel(first.address) as channel, in_background(partial(_write_others, rig)):
        stub: Any = QueryServiceStub(channel)
        probe = _Probe(rig, stub)
        times_ms = [probe.time_ms(number) for number in range(PROBES)]
    return percentiles("freshness_ms", times_ms)


class _Probe:
    """Writes one row after the other, and waits for each."""

    def __init__(self, rig: QueryRig, stub: Any) -> None:
        self._rig = rig
        self._stub = stub
        self._producer = producer(rig.cluster.bootstrap, linger_ms=0)
        self._appended: Message | None = None
        rig.sequence += 1

    def time_ms(self, number: int) -> float:
        query = KeyQuery(key=StateKey(group=row_key(number)))
        [before] = self._stub.BatchGetStates(BatchGetStatesRequest(store=STORE, keys=[query]), timeout=60).results
        query.after.CopyFrom(before.state.position)
        request = BatchGetStatesRequest(store=STORE, keys=[query], max_wait=Duration(seconds=30))
        waiting = self._stub.BatchGetStates.future(request, timeout=60)
        record = row_record(number, self._rig.sequence)
        self._producer.produce(self._rig.cluster.topic, record, row_key(number), on_delivery=self._note)
        self._producer.flush(30)
        [result] = waiting.result().results
        visible_ms = time.time_ns() / 1e6
        if self._appended is None or result.state.position.offset != self._appended.offset():
            raise ValueError(f"{row_key(number)}: another record than the one that was written became visible")
        return visible_ms - self._appended.timestamp()[1]

    def _note(self, error: KafkaError | None, message: Message) -> None:
        self._appended = None if error is not None else message


def _write_others(rig: QueryRig, done: Event) -> None:
    sender = producer(rig.cluster.bootstrap, linger_ms=5)

    def write(number: int) -> None:
        row = PROBES + number % max(1, rig.rows - PROBES)
        sender.produce(rig.cluster.topic, row_record(row, rig.sequence + 1), row_key(row))

    act_at_rate(done, RATE, TICK_S, write, lambda: sender.poll(0))
    sender.flush(30)


CALLERS = 4
OWNERS_ASKED = 200
BEFORE_S = 2.0
AFTER_S = 2.0


@dataclass
class _Caller:
    """Asks for one key after the other; `gap_s` is the longest time between two answers."""

    stub: Any
    keys: list[str]
    failed: int = 0
    gap_s: float = 0.0
    answered_by: set[str] = field(default_factory=set)

    def run(self, done: Event) -> None:
        answered_at = time.monotonic()
        for key in cycle(self.keys):
            if done.is_set():
                return
            try:
                answered_by = _answered_by(self.stub, key)
            except grpc.RpcError:
                self.failed += 1
                continue
            now = time.monotonic()
            self.gap_s, answered_at = max(self.gap_s, now - answered_at), now
            self.answered_by.add(answered_by)


def failover(rig: QueryRig) -> dict[str, float]:
    """Measures the longest time without an answer for any of four callers during the kill, and the failed reads.

    The instance with most of the keys is killed; all read these through another, one read at a time.
    `failover_gap_ms.calm` is the longest such time before the kill: the machine's own share, without any failure.
    """
    survivor, *others = rig.only(*rig.names)
    owners = keys_by_owner(survivor.address, spread_keys(rig.rows, OWNERS_ASKED))
    killed = max(others, key=lambda instance: len(owners.get(instance.name, ())))
    keys = owners[killed.name]
    with grpc.insecure_channel(survivor.address) as channel:
        stub: Any = QueryServiceStub(channel)
        calm = _read(stub, keys, lambda: None)
        during_kill = _read(stub, keys, killed.kill)
    if any(killed.name not in caller.answered_by or len(caller.answered_by) < 2 for caller in during_kill):
        raise ValueError("not every caller was answered by two instances: the kill was not seen")
    return {
        "failover_gap_ms": round(max(caller.gap_s for caller in during_kill) * 1000, 1),
        "failover_gap_ms.calm": round(max(caller.gap_s for caller in calm) * 1000, 1),
        "failover_failed_reads": sum(caller.failed for caller in during_kill),
    }


def keys_by_owner(address: str, keys: Sequence[str]) -> dict[str, list[str]]:
    """Returns the keys of each instance that owns some, as the instance at an address forwards them."""
    owners: dict[str, list[str]] = {}
    with grpc.insecure_channel(address) as channel:
        stub: Any = QueryServiceStub(channel)
        for key in keys:
            owners.setdefault(_answered_by(stub, key), []).append(key)
    return owners


def _answered_by(stub: Any, key: str) -> str:
    answer = stub.GetState(GetStateRequest(store=STORE, key=StateKey(group=key)), timeout=10)
    return str(answer.freshness.answered_by)


def _read(stub: Any, keys: list[str], disturb: Callable[[], None]) -> list[_Caller]:
    callers = [_Caller(stub, keys) for _ in range(CALLERS)]
    with ExitStack() as running:
        for caller in callers:
            running.enter_context(in_background(caller.run))
        wait_until(lambda: all(caller.answered_by for caller in callers))
        time.sleep(BEFORE_S)
        disturb()
        time.sleep(AFTER_S)
    return callers


MEASUREMENTS: Mapping[str, Callable[[QueryRig], dict[str, float]]] = {
    measurement.__name__: measurement for measurement in (restore, seed, apply, gets, scan, freshness, failover)
}


def measure(names: Sequence[str], rows: int, runs: int) -> Measured:
    """Makes the measurements one after the other, on the same instances."""
    print(f"writing {rows} rows", file=sys.stderr)
    with query_rig(rows) as rig:
        return measure_each({name: partial(repeat, partial(MEASUREMENTS[name], rig), runs) for name in names})


SUITE = Suite(
    name="query",
    description=__doc__,
    measurements=tuple(MEASUREMENTS),
    options={"rows": 1_000_000, "runs": 3},
    settings={
        "payload_bytes": PAYLOAD_BYTES,
        "partitions": PARTITIONS,
        "replicas": REPLICAS,
        "instances": "2; 1 for restore and apply",
        "apply_backlog": BACKLOG,
        "freshness_changes_per_s": RATE,
        "failover_callers": CALLERS,
    },
    measure=measure,
)

if __name__ == "__main__":
    sys.exit(SUITE.main())
