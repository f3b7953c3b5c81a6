"""What a caller of one instance notices when the other, which owns half of the keys, is killed."""

import time
from dataclasses import dataclass, field
from threading import Event, Thread
from typing import Any

import grpc
from drivers.query_cluster import STORE

from bench.query_rig import NAMES, QueryRig, wait_until
from bench.query_rows import key_of
from statecast.query.v1.query_service_pb2 import GetStateRequest
from statecast.query.v1.query_service_pb2_grpc import QueryServiceStub
from statecast.state.v1.state_pb2 import StateKey

CALLERS = 4
BEFORE_S = 2.0
AFTER_S = 2.0


@dataclass
class _Caller:
    """Asks for one key after the other; `gap_s` is the longest time between two answers."""

    stub: Any
    keys: list[str]
    done: Event
    failed: int = 0
    gap_s: float = 0.0
    answered_by: set[str] = field(default_factory=set)

    def run(self) -> None:
        answered_at = time.monotonic()
        turn = 0
        while not self.done.is_set():
            turn += 1
            request = GetStateRequest(store=STORE, key=StateKey(group=self.keys[turn % len(self.keys)]))
            try:
                answer = self.stub.GetState(request, timeout=10)
            except grpc.RpcError:
                self.failed += 1
                continue
            now = time.monotonic()
            self.gap_s, answered_at = max(self.gap_s, now - answered_at), now
            self.answered_by.add(answer.freshness.answered_by)


def failover(rig: QueryRig) -> dict[str, float]:
    """The longest time that any of four callers went without an answer around the kill, and the reads that failed.

    All read keys of the killed instance through the other, one read at a time. `failover_gap_ms.calm` is the longest
    such time before the kill: what the machine does to it without any failure.
    """
    survivor, killed = rig.only(*NAMES)
    with grpc.insecure_channel(survivor.address) as channel:
        stub: Any = QueryServiceStub(channel)
        keys = _keys_of(stub, killed.name, rig.rows)
        calm = _read(stub, keys, lambda: None)
        around = _read(stub, keys, killed.kill)
    if any(killed.name not in caller.answered_by or len(caller.answered_by) < 2 for caller in around):
        raise ValueError("not every caller was answered by both instances: the kill was not seen")
    return {
        "failover_gap_ms": round(max(caller.gap_s for caller in around) * 1000, 1),
        "failover_gap_ms.calm": round(max(caller.gap_s for caller in calm) * 1000, 1),
        "failover_failed_reads": sum(caller.failed for caller in around),
    }


def _keys_of(stub: Any, owner: str, rows: int) -> list[str]:
    sample = [key_of(number) for number in range(0, rows, max(1, rows // 200))]
    answers = {key: stub.GetState(GetStateRequest(store=STORE, key=StateKey(group=key)), timeout=10) for key in sample}
    return [key for key, answer in answers.items() if answer.freshness.answered_by == owner]


def _read(stub: Any, keys: list[str], disturb: Any) -> list[_Caller]:
    done = Event()
    callers = [_Caller(stub, keys, done) for _ in range(CALLERS)]
    threads = [Thread(target=caller.run) for caller in callers]
    for thread in threads:
        thread.start()
    try:
        wait_until(lambda: all(caller.answered_by for caller in callers))
        done.wait(BEFORE_S)
        disturb()
        done.wait(AFTER_S)
    finally:
        done.set()
        for thread in threads:
            thread.join()
    return callers
