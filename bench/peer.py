"""Measures Kafka Streams behind gRPC and the query service in turn: `make bench-peer`, bench/results/peer.json."""

import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import uvloop

from bench import peer_load
from bench.clusters import Instance
from bench.drains import BACKLOG, drain_ours, drain_peer
from bench.peer_changes import RATE, Pipeline, change_to_get, our_pipeline, peer_pipeline
from bench.peer_failover import CALLERS, failover
from bench.peer_restore import restore_ours, restore_peer
from bench.peer_rows import write_keyed
from bench.peer_systems import JAVA_OPTIONS, System, peer_cluster, wait_current
from bench.processor_workload import Bank
from bench.query_rig import SESSION_TIMEOUT_MS
from bench.results import Measured, Metric, Suite, combine, measure_each
from testkit.broker import running_broker
from testkit.keyed_topic_writers import order_key
from testkit.query_cluster import PARTITIONS, REPLICAS, query_cluster

LOOKED_UP = 5_000
WARM_S = 5.0
LOAD_S = 8.0
MANY_IN_FLIGHT = 256
SAMPLE = 50
OURS, PEER = "ours", "peer"
NAMES = {PEER: ("peer-1", "peer-2"), OURS: ("query-1", "query-2")}
Figures = Mapping[str, float]


def in_turn(measures: Mapping[str, Callable[[], Figures]], rounds: int) -> list[Metric]:
    """Makes each measurement once a round, in another order every round; names of metrics begin with its name.

    Prints the figures of each measurement on stderr as it goes: a run takes long.
    """
    runs = []
    for number in range(rounds):
        figures: dict[str, Figures] = {}
        for name in list(measures) if number % 2 == 0 else list(measures)[::-1]:
            figures[name] = measures[name]()
            print(f"{name}: {dict(figures[name])}", file=sys.stderr)
        runs.append({f"{name}.{metric}": value for name in measures for metric, value in figures[name].items()})
    return combine(runs)


@dataclass
class Rig:
    """Both systems over one topic on one broker."""

    bootstrap: str
    directory: Path
    topic: str
    systems: tuple[System, System]
    rows: int
    newest: int = 1
    """The highest version of any row."""

    def running(self, system: System) -> list[Instance]:
        """Both instances of the system, when they hold all rows."""
        instances = system.only(*NAMES[system.name])
        for instance in instances:
            wait_current(instance.address, map(order_key, range(self.rows - SAMPLE, self.rows)), 1)
        return instances

    def keys(self) -> list[str]:
        return [order_key(number) for number in range(0, self.rows, max(1, self.rows // LOOKED_UP))]


def gets(rig: Rig, system: System) -> Figures:
    """Single gets by ghz at one instance: keys that it owns, and keys that it passes on."""
    first, _ = rig.running(system)
    owned, foreign = peer_load.split_by_owner(first.address, rig.keys())
    peer_load.ghz_gets(first.address, owned + foreign, WARM_S)
    figures: dict[str, float] = {}
    for kind, keys in (("owner", owned), ("forwarded", foreign)):
        before_s = system.cpu_s()
        report = peer_load.ghz_gets(first.address, keys, LOAD_S)
        figures[f"gets_per_s.{kind}"] = round(report.per_s)
        figures[f"get_ms_p50.{kind}"] = round(report.p50_ms, 2)
        figures[f"get_server_us.{kind}"] = round((system.cpu_s() - before_s) * 1e6 / report.calls, 1)
    return figures


def python(rig: Rig, system: System) -> Figures:
    """Single gets of one Python process: by the stub at the owner, and by our client at all instances."""
    instances = rig.running(system)
    address = instances[0].address
    owned, _ = peer_load.split_by_owner(address, rig.keys())
    uvloop.run(peer_load.stub_gets(address, owned, WARM_S))
    figures: dict[str, float] = {}
    for suffix, in_flight in (("", peer_load.IN_FLIGHT), (f".{MANY_IN_FLIGHT}", MANY_IN_FLIGHT)):
        by_stub = peer_load.stub_gets(address, owned, LOAD_S, in_flight)
        figures[f"python_stub_gets_per_s{suffix}"] = round(uvloop.run(by_stub))
        if system.name == OURS:
            by_client = peer_load.client_gets([each.address for each in instances], rig.keys(), LOAD_S, in_flight)
            figures[f"python_client_gets_per_s{suffix}"] = round(uvloop.run(by_client))
    return figures


def batches(rig: Rig, system: System) -> Figures:
    """Batches of 500 keys of all owners at one instance, without positions and, of ours, with those of now."""
    first, _ = rig.running(system)
    requests = peer_load.batch_requests(rig.keys())
    uvloop.run(peer_load.batches(first.address, requests, peer_load.BATCH_KEYS, WARM_S))
    loads = [("changed", requests, peer_load.BATCH_KEYS)]
    if system.name == OURS:
        loads.append(("unchanged", uvloop.run(peer_load.known_requests(first.address, requests)), 0))
    figures: dict[str, float] = {}
    for kind, sent, results in loads:
        before_s = system.cpu_s()
        keys_per_s, keys = uvloop.run(peer_load.batches(first.address, sent, results, LOAD_S))
        figures[f"batch_keys_per_s.{kind}"] = round(keys_per_s)
        cpu_us = round((system.cpu_s() - before_s) * 1e6 / keys, 2)
        figures["batch_server_us" if kind == "changed" else f"batch_server_us.{kind}"] = cpu_us
    return figures


def memory(rig: Rig, system: System) -> Figures:
    """Both instances together, as the measurements before have left them."""
    rig.running(system)
    return {"rss_mb": system.rss_mb()}


def kill(rig: Rig, system: System) -> Figures:
    """Kills one instance; see bench.peer_failover. The instance is started again for the next round."""
    rig.running(system)
    rig.newest += 1
    figures = failover(system, NAMES[system.name], rig.bootstrap, rig.topic, rig.newest)
    rig.running(system)
    return figures


LOOKUPS: Mapping[str, Callable[[Rig, System], Figures]] = {
    "gets": gets,
    "python": python,
    "batches": batches,
    "memory": memory,
    "failover": kill,
}


@contextmanager
def both(bootstrap: str, directory: Path, rows: int) -> Iterator[Rig]:
    """Both systems over one topic full of rows; no instance runs yet."""
    with ExitStack() as running:
        ours = running.enter_context(
            query_cluster(bootstrap, directory / "query", session_timeout_ms=SESSION_TIMEOUT_MS)
        )
        theirs = running.enter_context(peer_cluster(bootstrap, directory / "peer", ours.topic))
        rig = Rig(bootstrap, directory, ours.topic, (System(PEER, theirs), System(OURS, ours)), rows)
        write_keyed(bootstrap, ours.topic, rows, 1)
        yield rig


def lookups(bootstrap: str, directory: Path, names: Sequence[str], rows: int, rounds: int) -> Measured:
    """Makes the measurements of LOOKUPS with these names, one after the other on the same instances."""
    with both(bootstrap, directory, rows) as rig:

        def measure(name: str) -> list[Metric]:
            return in_turn({each.name: partial(LOOKUPS[name], rig, each) for each in rig.systems}, rounds)

        return measure_each({name: partial(measure, name) for name in names})


def restore(bootstrap: str, directory: Path, rows: int, rounds: int) -> list[Metric]:
    """Measures one instance of each with an empty disk, on a topic of its own."""
    with ExitStack() as running:
        ours = running.enter_context(query_cluster(bootstrap, directory / "query"))
        theirs = running.enter_context(peer_cluster(bootstrap, directory / "peer", ours.topic))
        write_keyed(bootstrap, ours.topic, rows, 1)
        return in_turn({PEER: partial(restore_peer, theirs, rows, 1), OURS: partial(restore_ours, ours)}, rounds)


def changes(bootstrap: str, directory: Path, rows: int, rounds: int, seconds: float) -> list[Metric]:
    """Measures the processing of each, started anew for each window, the peer's in three ways."""

    def measure(name: str, topology: str = "", *, tuned: bool = False) -> Figures:
        with tempfile.TemporaryDirectory(dir=directory) as temporary, ExitStack() as running:
            place = Path(temporary) / "system"
            manager = (
                peer_pipeline(bootstrap, place, name, topology, tuned=tuned)
                if topology
                else our_pipeline(bootstrap, place, name)
            )
            pipeline: Pipeline = running.enter_context(manager)
            return change_to_get(pipeline, rows, seconds)

    tuned = f"{PEER}-tuned"
    by_key = f"{PEER}-tuned-by-key"
    return in_turn(
        {
            PEER: partial(measure, PEER, "latest"),
            tuned: partial(measure, tuned, "latest", tuned=True),
            by_key: partial(measure, by_key, "latest-by-key", tuned=True),
            OURS: partial(measure, OURS),
        },
        rounds,
    )


INGESTED = {"latest": "latest-by-key", "aggregate": "aggregate"}
"""The shapes of which both work off a backlog, with the peer's topology for each."""


def ingest(bootstrap: str, directory: Path, backlog: int, rounds: int) -> list[Metric]:
    """Measures a backlog of the same changes, worked off by one instance of each, the processor in real-time mode."""
    bank = Bank()

    def measure(system: str) -> Figures:
        figures: dict[str, float] = {}
        for shape, topology in INGESTED.items():
            with tempfile.TemporaryDirectory(dir=directory) as temporary:
                drained = (
                    drain_peer(bootstrap, Path(temporary) / "peer", shape, topology, bank, backlog)
                    if system == PEER
                    else drain_ours(bootstrap, shape, "realtime", bank, backlog)
                )
            figures[f"ingest_changes_per_s.{shape}"] = drained.changes_per_s
            figures[f"ingest_cpu_us.{shape}"] = drained.cpu_us
        return figures

    return in_turn({PEER: partial(measure, PEER), OURS: partial(measure, OURS)}, rounds)


def measure(names: Sequence[str], rows: int, restored: int, rounds: int, seconds: float, backlog: int) -> Measured:
    """Makes the measurements one after the other, on one broker."""
    metrics: list[Metric] = []
    failed: list[str] = []
    with tempfile.TemporaryDirectory(prefix="statecast-bench-") as temporary:
        directory = Path(temporary)
        with running_broker(directory / "broker", heap="1g") as broker:
            chosen = [name for name in LOOKUPS if name in names]
            if chosen:
                metrics, failed = lookups(broker.bootstrap, directory / "lookups", chosen, rows, rounds)
            alone = {
                "restore": partial(restore, broker.bootstrap, directory / "restore", restored, rounds),
                "change_to_get": partial(changes, broker.bootstrap, directory, rows, rounds, seconds),
                "ingest": partial(ingest, broker.bootstrap, directory, backlog, rounds),
            }
            others = measure_each({name: job for name, job in alone.items() if name in names})
    return metrics + others[0], failed + others[1]


SUITE = Suite(
    name="peer",
    description=__doc__,
    measurements=(*LOOKUPS, "restore", "change_to_get", "ingest"),
    options={"rows": 50_000, "restored": 500_000, "rounds": 3, "seconds": 60.0, "backlog": BACKLOG},
    settings={
        "partitions": PARTITIONS,
        "replicas": REPLICAS,
        "instances": "2; 1 for restore",
        "session_timeout_ms": SESSION_TIMEOUT_MS,
        "peer_java_options": JAVA_OPTIONS,
        "gets_in_flight": peer_load.IN_FLIGHT,
        "batches_in_flight": peer_load.BATCHES_IN_FLIGHT,
        "failover_callers": CALLERS,
        "changes_per_s": RATE,
        "environment": {name: value for name, value in os.environ.items() if name.startswith("QUERY_SERVICE_")},
    },
    measure=measure,
)

if __name__ == "__main__":
    sys.exit(SUITE.main())
