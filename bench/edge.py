"""Measures one ws-edge before a real query service, and writes bench/results/edge.json: `make bench-edge`."""

import json
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from urllib.request import Request, urlopen

from bench.edge_neighbours import neighbours
from bench.edge_resumes import resumes
from bench.edge_rig import SECRET, EdgeProcess, EdgeRig, edge_rig
from bench.results import Measured, Suite, measure_each, percentiles, repeat
from testkit.waiting import wait_until
from testkit.ws_edge.edge import gateway_headers

RATE = 1_000  # changes a second
WARM_UP_S = 2.0
INTERVALS_MS = (0, 100, 1000)
FEW = 10  # a tenth of the sockets shows whether the query service notices how many there are
EDGES = (1, 2, 4)
STALLED_SHARE = 0.4  # of 5,000 sockets, 2,000 that do not read
WIDE = 8_000  # bytes of the rows that fill the buffers of those
WIDE_KEYS = 4
WIDE_ROUNDS = 60
HOT_KEYS = 10
HOT_RATE = 400
HOT_SOCKETS = 0.2
ONE_KEY_RATE = 5
PAUSE_S = 0.1


def sockets(rig: EdgeRig) -> dict[str, float]:
    """Opens idle sockets: how many a second, and the memory of each."""
    with rig.edge() as edge:
        before = edge.rss_bytes
        seconds = edge.clients.ask("open", rig.sockets)
        wait_until(lambda: edge.metric("ws_edge_sockets") == rig.sockets, "all sockets are open")
        after = edge.rss_bytes
    return {
        "connects_per_s": round(rig.sockets / seconds),
        "socket_rss_kb": round((after - before) / rig.sockets / 1e3, 1),
    }


def ages(rig: EdgeRig) -> dict[str, float]:
    """From commit to client at 1,000 changes a second, each socket with one key, at three intervals."""
    figures: dict[str, float] = {}
    for interval_ms in INTERVALS_MS:
        with rig.watching_edge(rig.sockets, rig.keys, interval_ms) as edge:
            figures |= _ages(rig, edge, f".interval_{interval_ms}")
    return figures


def upstream(rig: EdgeRig) -> dict[str, float]:
    """Measures the load on the query service for a tenth of the sockets, then for all on the same keys, at 1 s.

    `naive` is the number of calls if each socket polled for itself.
    """
    figures: dict[str, float] = {}
    for count in (rig.sockets // FEW, rig.sockets):
        rates, _ = _rates_for_few_keys(rig, f".{count}", 1, count)
        figures |= rates | {f"naive_calls_per_s.{count}": count}
    return figures


def edges(rig: EdgeRig) -> dict[str, float]:
    """Measures the calls to the query service, and its CPU time, when several edges watch the same keys at 1 s."""
    figures: dict[str, float] = {}
    for count in EDGES:
        rates, used_s = _rates_for_few_keys(rig, f".edges_{count}", count, rig.sockets // FEW)
        figures |= rates | {f"query_cpu_ms_per_s.edges_{count}": round(used_s * 1000 / rig.seconds, 1)}
    return figures


def stalled(rig: EdgeRig) -> dict[str, float]:
    """Measures the ages at interval 0 beside many clients that do not read at all, and the memory of each of them."""
    readers = round(rig.sockets * (1 - STALLED_SHARE))
    wide = [f"wide-{number}" for number in range(WIDE_KEYS)]
    rig.writer.write(wide, WIDE)
    with rig.edge() as edge:
        edge.clients.ask("open", readers)
        edge.clients.ask("open", rig.sockets - readers, True)
        edge.clients.ask("watch", rig.store, wide, 100, readers, WIDE_KEYS)
        edge.clients.ask("stop_reading", readers)
        before = edge.rss_bytes
        for _ in range(WIDE_ROUNDS):
            rig.writer.write(wide, WIDE)
            time.sleep(PAUSE_S)
        wait_until(lambda: edge.metric("ws_edge_skipped_total") > 0, "versions are skipped")
        after = edge.rss_bytes
        skipped = edge.metric("ws_edge_skipped_total")
        edge.clients.ask("watch", rig.store, rig.keys, 0, 0, 1, readers)
        figures = _ages(rig, edge, ".stalled")
        still = edge.metric("ws_edge_sockets")
    return figures | {
        "stalled_sockets": still - readers,
        "stalled_skipped": skipped,
        "stalled_socket_rss_kb": round((after - before) / (rig.sockets - readers) / 1e3, 1),
    }


def hot_key(rig: EdgeRig) -> dict[str, float]:
    """Returns the ages when all sockets watch one key, which changes five times a second."""
    with rig.watching_edge(rig.sockets, rig.keys[:1], 0) as edge:
        time.sleep(WARM_UP_S)
        with rig.writer.writing(rig.keys[:1], ONE_KEY_RATE):
            _, ages_ms = edge.clients.ask("listen", rig.seconds, True)
    return percentiles("age_ms", ages_ms, ".hot_key")


def frames(rig: EdgeRig) -> dict[str, float]:
    """Returns the frames that one edge delivers in a second, when more are asked for than it can."""
    keys = rig.keys[:HOT_KEYS]
    watching = rig.watching_edge(round(rig.sockets * HOT_SOCKETS), keys, 0, HOT_KEYS)
    with watching as edge, rig.writer.writing(keys, HOT_RATE):
        time.sleep(WARM_UP_S)
        per_s, _ = edge.clients.ask("listen", rig.seconds, False)
    return {"frames_per_s": round(per_s)}


def _ages(rig: EdgeRig, edge: EdgeProcess, suffix: str) -> dict[str, float]:
    with rig.writer.writing(rig.keys, RATE):
        time.sleep(WARM_UP_S)
        rates, ages_ms = _listen(rig, edge, suffix, aging=True)
    return percentiles("age_ms", ages_ms, suffix) | rates


def _rates_for_few_keys(rig: EdgeRig, suffix: str, edges: int, sockets: int) -> tuple[dict[str, float], float]:
    """Returns the load on the query service, and its CPU seconds, when so many edges watch a tenth of the keys.

    `sockets` is the number of sockets of each edge.
    """
    keys = rig.keys[: len(rig.keys) // FEW]
    with ExitStack() as stack:
        running = [stack.enter_context(rig.watching_edge(sockets, keys, 1000)) for _ in range(edges)]
        time.sleep(WARM_UP_S)
        with rig.writer.writing(keys, RATE / FEW):
            used_s = rig.query_cpu_s()
            rates, _ = _listen(rig, running[0], suffix, aging=False)
            return rates, rig.query_cpu_s() - used_s


def _listen(rig: EdgeRig, edge: EdgeProcess, suffix: str, *, aging: bool) -> tuple[dict[str, float], list[float]]:
    """Returns the load on the query service while the clients listen; with `aging` also the ages of changes in ms."""
    keys_before, calls_before = rig.upstream()
    began = time.monotonic()
    _, ages_ms = edge.clients.ask("listen", rig.seconds, aging)
    keys, calls = rig.upstream()
    seconds = time.monotonic() - began
    return {
        f"upstream_keys_per_s{suffix}": round((keys - keys_before) / seconds),
        f"upstream_calls_per_s{suffix}": round((calls - calls_before) / seconds, 1),
    }, ages_ms


REVOKING_EDGES = 2
REVOKED_SOCKETS = 0.1  # a tenth of the sockets of the other measurements, over both edges
REVOKED_KEYS = 10
REVOKED_RATE = 200
REVOKED = 4403


def revocation(rig: EdgeRig) -> dict[str, float]:
    """From the call to the last frame and to the last close, while all sockets keep receiving changes of ten keys."""
    consumer = f"bench-revoked-{time.time_ns()}"
    count = round(rig.sockets * REVOKED_SOCKETS / REVOKING_EDGES)
    with ExitStack() as stack:
        edges = [stack.enter_context(rig.edge(kafka_bootstrap=rig.cluster.bootstrap)) for _ in range(REVOKING_EDGES)]
        for edge in edges:
            edge.clients.ask("open", count, False, consumer)
            edge.clients.ask("watch", rig.store, rig.keys[:REVOKED_KEYS], 0, 0, 1)
        with rig.writer.writing(rig.keys[:REVOKED_KEYS], REVOKED_RATE):
            time.sleep(WARM_UP_S)
            for edge in edges:
                edge.clients.ask("watch_end")
            began = time.monotonic()
            _revoke(edges[0].address, consumer)
            answered = time.monotonic()
            ends = [edge.clients.ask("ended") for edge in edges]
    figures = {"revocation_ms.answer": round((answered - began) * 1000, 1)}
    for name, (last_frame, last_close, codes) in zip(("called", "other"), ends, strict=True):
        if codes != {REVOKED}:
            raise ValueError(f"the edge has closed with {codes}, not with {REVOKED} alone")
        figures |= {
            f"revocation_ms.last_frame.{name}_edge": round((last_frame - began) * 1000, 1),
            f"revocation_ms.last_close.{name}_edge": round((last_close - began) * 1000, 1),
        }
    return figures


def _revoke(address: str, consumer: str) -> None:
    headers = gateway_headers(SECRET, "bench-operator", "staff") | {"Content-Type": "application/json"}
    body = json.dumps({"consumer": consumer}).encode()
    with urlopen(Request(f"http://{address}/v1/revocations", body, headers), timeout=30) as answer:
        answer.read()


MEASUREMENTS: Mapping[str, Callable[[EdgeRig], dict[str, float]]] = {
    measurement.__name__: measurement
    for measurement in (sockets, ages, upstream, edges, stalled, neighbours, hot_key, frames, resumes, revocation)
}


def measure(names: Sequence[str], sockets: int, seconds: float, runs: int) -> Measured:
    """Makes the measurements one after the other, each with an edge of its own, which is listened to for `seconds`."""
    with edge_rig(sockets, seconds) as rig:
        return measure_each({name: partial(repeat, partial(MEASUREMENTS[name], rig), runs) for name in names})


SUITE = Suite(
    name="edge",
    description=__doc__,
    measurements=tuple(MEASUREMENTS),
    options={"sockets": 5_000, "seconds": 10.0, "runs": 3},
    settings={"changes_per_s": RATE, "stalled_share": STALLED_SHARE, "query_instances": 2, "edges": 1},
    measure=measure,
)

if __name__ == "__main__":
    sys.exit(SUITE.main())
