"""How long a record takes from the topic until a waiting lookup has it, while others keep coming."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event
from typing import Any

import grpc
from confluent_kafka import KafkaError, Message
from drivers.meanwhile import act_at_rate, meanwhile
from drivers.query_cluster import STORE
from google.protobuf.duration_pb2 import Duration

from bench.query_rig import NAMES, QueryRig
from bench.query_rows import encoded, key_of, producer
from bench.results import percentiles
from statecast.query.v1.query_pb2 import KeyQuery
from statecast.query.v1.query_service_pb2 import BatchGetStatesRequest
from statecast.query.v1.query_service_pb2_grpc import QueryServiceStub
from statecast.state.v1.state_pb2 import Position, StateKey

PROBES = 300
RATE = 1_000
TICK_S = 0.01


def freshness(rig: QueryRig) -> dict[str, float]:
    """From the broker's time of the append, in whole milliseconds, to the answer at the client."""
    first, _ = rig.only(*NAMES)
    with grpc.insecure_channel(first.address) as channel, _others_written(rig):
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
        query = KeyQuery(key=StateKey(group=key_of(number)))
        query.after.CopyFrom(self._wait(query))
        waiting = self._stub.BatchGetStates.future(self._request(query, wait_s=30), timeout=60)
        record = encoded(number, self._rig.sequence)
        self._producer.produce(self._rig.cluster.topic, record, key_of(number), on_delivery=self._note)
        self._producer.flush(30)
        [result] = waiting.result().results
        visible_ms = time.time_ns() / 1e6
        if self._appended is None or result.state.position.offset != self._appended.offset():
            raise ValueError(f"{key_of(number)}: another record than the one that was written became visible")
        return visible_ms - self._appended.timestamp()[1]

    def _wait(self, query: KeyQuery) -> Position:
        [result] = self._stub.BatchGetStates(self._request(query, wait_s=0), timeout=60).results
        position: Position = result.state.position
        return position

    def _request(self, query: KeyQuery, wait_s: int) -> BatchGetStatesRequest:
        return BatchGetStatesRequest(store=STORE, keys=[query], max_wait=Duration(seconds=wait_s))

    def _note(self, error: KafkaError | None, message: Message) -> None:
        self._appended = None if error is not None else message


@contextmanager
def _others_written(rig: QueryRig) -> Iterator[None]:
    """Writes other rows at a steady rate meanwhile."""
    sender = producer(rig.cluster.bootstrap, linger_ms=5)

    def write(number: int) -> None:
        row = PROBES + number % max(1, rig.rows - PROBES)
        sender.produce(rig.cluster.topic, encoded(row, rig.sequence + 1), key_of(row))

    def write_all(done: Event) -> None:
        act_at_rate(done, RATE, TICK_S, write, lambda: sender.poll(0))
        sender.flush(30)

    with meanwhile(write_all):
        yield
