"""The ages that one customer sees while others are slow, flood the edge, or call it as fast as they can."""

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from threading import Event

from bench.edge_rig import SECRET, EdgeProcess, EdgeRig
from bench.results import percentiles
from testkit.background import in_background
from testkit.edge_clients import crowd
from testkit.keyed_topic_writers import OrderWriter
from testkit.noisy_customers import NoisyCustomers

SHARE = 0.2  # of the sockets of the other measurements: a thousand
RATE = 1_000  # changes a second
SLOW_SOCKETS = 200
WIDE = 8_000  # bytes of the rows that slow clients do not read
WIDE_KEYS = 4
WIDE_PAUSE_S = 0.1
SETTLING_S = 2.0


@contextmanager
def _alone(_: EdgeRig, __: EdgeProcess) -> Iterator[None]:
    yield


@contextmanager
def _slow(rig: EdgeRig, edge: EdgeProcess) -> Iterator[None]:
    """Sockets of one customer that watch wide rows and read nothing."""
    keys = [f"wide-{time.time_ns()}-{number}" for number in range(WIDE_KEYS)]
    writer = OrderWriter(rig.cluster.bootstrap, rig.cluster.topic)
    writer.write(keys, WIDE)

    def widen(done: Event) -> None:
        while not done.wait(WIDE_PAUSE_S):
            writer.write(keys, WIDE)

    with crowd(edge.address, SECRET) as clients:
        clients.ask("open", SLOW_SOCKETS, True, "noisy-slow")
        clients.ask("watch", rig.store, keys, 0, 0, WIDE_KEYS)
        clients.ask("stop_reading", 0)
        with in_background(widen):
            yield


@contextmanager
def _flooding(rig: EdgeRig, edge: EdgeProcess) -> Iterator[None]:
    with _noisy(edge, "flood", rig.store, rig.keys):
        yield


@contextmanager
def _calling(rig: EdgeRig, edge: EdgeProcess) -> Iterator[None]:
    with _noisy(edge, "call", f"/v1/stores/{rig.store}/rows?limit=1000"):
        yield


@contextmanager
def _noisy(edge: EdgeProcess, method: str, *arguments: object) -> Iterator[None]:
    with crowd(edge.address, SECRET, NoisyCustomers) as clients:
        clients.ask(method, *arguments)
        yield
        failed, closed = clients.ask("stop")
        if failed:
            raise ValueError(f"{failed} of the noisy customers have failed, so the figures say nothing")
        sys.stderr.write(f"sockets of the noisy customer that the edge has closed: {closed}\n")


NEIGHBOURS: Mapping[str, Callable[[EdgeRig, EdgeProcess], AbstractContextManager[None]]] = {
    "alone": _alone,
    "slow": _slow,
    "flooding": _flooding,
    "calling": _calling,
}


def neighbours(rig: EdgeRig) -> dict[str, float]:
    """Returns the ages at interval 0 beside each of the neighbours, and by how much each raises the 99th percentile."""
    figures: dict[str, float] = {}
    with rig.watching_edge(round(rig.sockets * SHARE), rig.keys, 0) as edge:
        for name, neighbour in NEIGHBOURS.items():
            with ExitStack() as stack:
                stack.enter_context(neighbour(rig, edge))
                stack.enter_context(rig.writer.writing(rig.keys, RATE))
                time.sleep(SETTLING_S)
                _, ages_ms = edge.clients.ask("listen", rig.seconds, True)
            figures |= percentiles("age_ms", ages_ms, f".neighbour_{name}")
    alone = figures["age_ms_p99.neighbour_alone"]
    rises = {name: figures[f"age_ms_p99.neighbour_{name}"] / alone for name in NEIGHBOURS if name != "alone"}
    return figures | {f"neighbour_rise_percent.{name}": round(100 * (rise - 1)) for name, rise in rises.items()}
