"""The view of readers and a writer when the owner of their keys is killed."""

import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import cycle
from threading import Event
from typing import Any

import grpc

from bench.peer_rows import flush, keyed_record, send
from bench.peer_systems import System, get, holds
from bench.query_rig import wait_until
from statecast.query.v1.query_service_pb2_grpc import QueryServiceStub
from testkit.background import in_background
from testkit.keyed_topic_writers import order_key, producer

CALLERS = 4
KEYS = 200
BEFORE_S = 2.0
AFTER_S = 10.0  # longer than the session of the dead owner, so that its replacement is seen too
POLL_S = 0.005


@dataclass
class Caller:
    """Reads one key after the other; `gap_s` is the longest time between two answers."""

    stub: Any
    keys: Sequence[str]
    failed: int = 0
    gap_s: float = 0.0
    answers: int = 0
    answered_by: set[str] = field(default_factory=set)

    def run(self, done: Event) -> None:
        answered_at = time.monotonic()
        for key in cycle(self.keys):
            if done.is_set():
                self.gap_s = max(self.gap_s, time.monotonic() - answered_at)
                return
            try:
                self.answered_by.add(get(self.stub, key).freshness.answered_by)
            except grpc.RpcError:
                self.failed += 1
                continue
            now = time.monotonic()
            self.gap_s, answered_at = max(self.gap_s, now - answered_at), now
            self.answers += 1


def failover(system: System, names: Sequence[str], bootstrap: str, topic: str, version: int) -> dict[str, float]:
    """Kills one of two instances under four callers of the other, and writes `version` of one of its keys.

    The callers read keys that the dead instance owned until AFTER_S later. `write_visible_ms` is from the write, right
    after the kill, to the first get at the other instance that answers with it.
    """
    survivor, killed = system.only(*names)
    with grpc.insecure_channel(survivor.address) as channel:
        stub: Any = QueryServiceStub(channel)
        numbers = [
            number for number in range(KEYS) if get(stub, order_key(number)).freshness.answered_by == killed.name
        ]
        callers = [Caller(stub, [order_key(number) for number in numbers]) for _ in range(CALLERS)]
        with ExitStack() as running:
            for caller in callers:
                running.enter_context(in_background(caller.run))
            wait_until(lambda: all(caller.answers for caller in callers))
            time.sleep(BEFORE_S)
            killed.kill()
            killed_at = time.monotonic()
            visible_ms = _write_visible_ms(stub, bootstrap, topic, numbers[0], version)
            time.sleep(max(0.0, AFTER_S - (time.monotonic() - killed_at)))
    if any(killed.name not in caller.answered_by or len(caller.answered_by) < 2 for caller in callers):
        raise ValueError("not every caller was answered by both instances: the kill was not seen")
    return {
        "failover_gap_ms": round(max(caller.gap_s for caller in callers) * 1000, 1),
        "failover_failed_reads": sum(caller.failed for caller in callers),
        "write_visible_ms": round(visible_ms, 1),
    }


def _write_visible_ms(stub: Any, bootstrap: str, topic: str, number: int, version: int) -> float:
    sender = producer(bootstrap, linger_ms=0)
    began = time.monotonic()
    send(sender, topic, number, keyed_record(number, version))
    flush(sender)
    wait_until(lambda: holds(stub, order_key(number), version), POLL_S)
    return (time.monotonic() - began) * 1000
