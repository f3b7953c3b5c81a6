"""From a change of the source to the lookup that answers with it, through the processing of each system."""

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path
from threading import Event
from typing import Any
from uuid import uuid4

import grpc
import yaml

from bench.peer_rows import change, flush, send, write_changes
from bench.peer_systems import TUNED, System, get, holds, peer_cluster, wait_current
from bench.processor_rig import PIPELINES
from bench.query_rig import SESSION_TIMEOUT_MS, wait_until
from bench.results import percentiles
from statecast.query.v1.query_service_pb2_grpc import QueryServiceStub
from testkit.background import act_at_rate, in_background
from testkit.keyed_topic_writers import order_key, producer
from testkit.ports import free_ports
from testkit.query_cluster import PARTITIONS, query_cluster
from testkit.stream_processor.process import Processor
from testkit.topics import create_topic

RATE = 1_000
TICK_S = 0.005
WARM_S = 20.0
PROBE_EVERY_S = 0.1
POLL_S = 0.001
MIN_PROBES = 100
PROBES = 50
"""The first rows are probed; the others are changed by the load."""


@dataclass(frozen=True)
class Pipeline:
    """A topic of changes, and the system with two instances that serve the rows that the changes make."""

    bootstrap: str
    source: str
    system: System
    names: tuple[str, str]


@contextmanager
def peer_pipeline(bootstrap: str, directory: Path, name: str, topology: str, *, tuned: bool) -> Iterator[Pipeline]:
    """Yields the peer with a topology that keeps the newest row of each order."""
    source = _source(bootstrap)
    with peer_cluster(bootstrap, directory, source, topology, [TUNED] if tuned else []) as cluster:
        yield Pipeline(bootstrap, source, System(name, cluster), ("peer-1", "peer-2"))


@contextmanager
def our_pipeline(bootstrap: str, directory: Path, name: str) -> Iterator[Pipeline]:
    """Yields the stream-processor with the pipeline orders-by-key as it ships, and the query service over its topic."""
    source = _source(bootstrap)
    create_topic(bootstrap, f"{source}.dead-letter", 1)
    with ExitStack() as running:
        query = query_cluster(bootstrap, directory / "query", session_timeout_ms=SESSION_TIMEOUT_MS)
        cluster = running.enter_context(query)
        [shipped] = PIPELINES.rglob("orders-by-key.yaml")
        content = yaml.safe_load(shipped.read_text())
        content["source"]["topic"], content["sink"]["topic"] = source, cluster.topic
        file = directory / shipped.name
        file.write_text(yaml.safe_dump(content))
        processor = Processor(directory / "processor", bootstrap, free_ports(1)[0], [file])
        running.callback(processor.close)
        processor.start()
        processor.wait_ready()
        yield Pipeline(bootstrap, source, System(name, cluster), ("query-1", "query-2"))


def change_to_get(pipeline: Pipeline, rows: int, seconds: float) -> dict[str, float]:
    """Changes rows at RATE a second, and now and then one that is looked up at its owner until the answer has it."""
    write_changes(pipeline.bootstrap, pipeline.source, rows, 1)
    instances = pipeline.system.only(*pipeline.names)
    last = [order_key(number) for number in range(rows - PROBES, rows)]
    wait_current(instances[0].address, last, 1)
    addresses = {instance.name: instance.address for instance in instances}
    with ExitStack() as running:
        channels = {name: running.enter_context(grpc.insecure_channel(at)) for name, at in addresses.items()}
        stubs: dict[str, Any] = {name: QueryServiceStub(channel) for name, channel in channels.items()}
        any_stub = next(iter(stubs.values()))
        owners = [get(any_stub, order_key(number)).freshness.answered_by for number in range(PROBES)]
        running.enter_context(in_background(partial(_change_others, pipeline, rows)))
        time.sleep(WARM_S)
        times_ms = _probe(pipeline, [stubs[owner] for owner in owners], seconds)
    return percentiles("change_to_get_ms", times_ms)


def _probe(pipeline: Pipeline, stubs: list[Any], seconds: float) -> list[float]:
    sender = producer(pipeline.bootstrap, linger_ms=0)
    times_ms: list[float] = []
    started = time.monotonic()
    for turn in count():
        if time.monotonic() - started > seconds and len(times_ms) >= MIN_PROBES:
            return times_ms
        number, version = turn % PROBES, 2 + turn // PROBES
        value = change(number, version)
        began = time.monotonic()
        send(sender, pipeline.source, number, value)
        flush(sender)
        wait_until(partial(holds, stubs[number], order_key(number), version), POLL_S)
        times_ms.append((time.monotonic() - began) * 1000)
        time.sleep(max(0.0, began + PROBE_EVERY_S - time.monotonic()))
    raise AssertionError


def _change_others(pipeline: Pipeline, rows: int, done: Event) -> None:
    sender = producer(pipeline.bootstrap, linger_ms=1)
    others = rows - PROBES

    def write(number: int) -> None:
        row, version = PROBES + number % others, 2 + number // others
        send(sender, pipeline.source, row, change(row, version))

    act_at_rate(done, RATE, TICK_S, write, lambda: sender.poll(0))
    flush(sender)


def _source(bootstrap: str) -> str:
    source = f"orders-{uuid4().hex[:8]}"
    create_topic(bootstrap, source, PARTITIONS)
    return source
