"""The load on the query service, and the latency of its other callers, when an edge dies and many sockets return."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event
from typing import Any

import grpc

from bench.edge_rig import SECRET, EdgeProcess, EdgeRig
from bench.results import percentiles
from statecast.query.v1.query_service_pb2 import GetStateRequest
from statecast.query.v1.query_service_pb2_grpc import QueryServiceStub
from statecast.state.v1.state_pb2 import StateKey
from testkit.background import in_background
from testkit.edge_clients import CrowdProcess, crowd
from testkit.keyed_topic_writers import order_key
from testkit.resuming_clients import ResumeCount, Resumers
from ws_edge.settings import Settings

TIMES = 2  # so many times the sockets of the other measurements: ten thousand
INTERVAL_MS = 1000
RATE = 500  # changes a second, before the kill, through it and after it
LOOKUP_PAUSE_S = 0.01
SAMPLE_S = 0.05
CALM_S = 2.0
PACED = {"sockets_per_s": Settings.model_fields["sockets_per_s"].default}  # which the rig takes away
BATCHES = "BatchGetStates"  # only the edge sends batches: the other caller looks up single keys


def resumes(rig: EdgeRig) -> dict[str, float]:
    """Kills an edge when each of its sockets holds a token, starts it again, and waits until all have resumed."""
    keys = [order_key(number) for number in range(TIMES * rig.sockets)]
    rig.writer.write(keys)
    with rig.edge(**PACED) as edge, crowd(edge.address, SECRET, Resumers) as clients:
        with rig.writer.writing(keys, RATE):
            clients.ask("begin", rig.store, keys, INTERVAL_MS)
            time.sleep(CALM_S)
            with _lookups(rig) as before_ms:
                time.sleep(rig.seconds)
            with _lookups(rig) as during_ms:
                restart = _restart(rig, edge, clients)
        count, missed = clients.ask("settled", [rig.writer.newest[key] for key in keys])
    return {
        **restart,
        **percentiles("lookup_ms", before_ms, ".before_resumes"),
        **percentiles("lookup_ms", during_ms, ".resumes"),
        "resumes_recovered_percent": round(100 * count.resumed / (count.resumed + count.snapshots), 2),
        "resumes_frames_repeated": count.repeated,
        "resumes_frames_missed": missed,
    }


def _restart(rig: EdgeRig, edge: EdgeProcess, clients: CrowdProcess) -> dict[str, float]:
    clients.ask("begin_count")
    keys_before, calls_before = rig.upstream(method=BATCHES)
    with _load(rig) as load:
        killed_at = time.monotonic()
        edge.kill()
        edge.start()
        edge.wait_ready()
        count: ResumeCount = clients.ask("resumed")
    keys, calls = rig.upstream(method=BATCHES)
    seconds = count.resumed_at - killed_at
    return {
        "resumes_ms": round(seconds * 1000),
        "resumes_refused": count.refused,
        "resumes_keys": keys - keys_before,
        "resumes_calls_per_s": round((calls - calls_before) / seconds, 1),
        "resumes_calls_in_flight": max(load),
    }


@contextmanager
def _lookups(rig: EdgeRig) -> Iterator[list[float]]:
    """Yields the latencies, in milliseconds, of another caller that sends one lookup after the other in the block."""
    times_ms: list[float] = []
    address = next(iter(rig.cluster.instances.values())).address

    def look_up(done: Event) -> None:
        with grpc.insecure_channel(address) as channel:
            stub: Any = QueryServiceStub(channel)
            while not done.wait(LOOKUP_PAUSE_S):
                key = StateKey(group=rig.keys[len(times_ms) % len(rig.keys)])
                began = time.perf_counter()
                stub.GetState(GetStateRequest(store=rig.store, key=key), timeout=30)
                times_ms.append((time.perf_counter() - began) * 1000)

    with in_background(look_up):
        yield times_ms


@contextmanager
def _load(rig: EdgeRig) -> Iterator[list[float]]:
    """Yields the most batches that an instance has in work, looked at again and again meanwhile."""
    samples = [0.0]

    def look(done: Event) -> None:
        while not done.wait(SAMPLE_S):
            instances = rig.cluster.instances.values()
            samples.append(max(each.metric("query_service_calls_in_flight", method=BATCHES) for each in instances))

    with in_background(look):
        yield samples
