"""Measures one ws-edge before a real query service, and writes bench/results/edge.json: `make bench-edge`."""

import json
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from urllib.request import Request, urlopen

from bench.edge_resumes import resumes
from bench.edge_rig import SECRET, EdgeProcess, EdgeRig, edge_rig
from bench.results import Measured, Suite, measure_each, percentiles, repeat
from testkit.waiting import wait_until

RATE = 1_000
"""Changes a second."""
WARM_UP_S = 2.0
INTERVALS_MS = (0, 100, 1000)
FEW = 10
"""A tenth of the sockets shows whether the query service notices how many there are."""
EDGES = (1, 2, 4)
STALLED_SHARE = 0.4
"""Of 5,000 sockets, 2,000 that do not read."""
WIDE = 8_000
"""Bytes of the rows that fill the buffers of those."""
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
        before = edge.rss_kb
        seconds = edge.clients.ask("open", rig.sockets)
        wait_until(lambda: edge.metric("ws_edge_sockets") == rig.sockets, "all sockets are open")
        after = edge.rss_kb
    return {
        "connects_per_s": round(rig.sockets / seconds),
        "socket_rss_kb": round((after - before) / rig.sockets, 1),
    }


def ages(rig: EdgeRig) -> dict[str, float]:
    """From commit to client at 1,000 changes a second, each socket with one key, at three intervals."""
    figures: dict[str, float] = {}
    for interval_ms in INTERVALS_MS:
        with rig.edge() as edge:
            edge.clients.ask("open", rig.sockets)
            edge.clients.ask("subscribe", rig.store, rig.keys, interval_ms, 0, 1)
            figures |= _listen(rig, edge, f".interval_{interval_ms}")
    return figures


def upstream(rig: EdgeRig) -> dict[str, float]:
    """What the query service is asked for a tenth of the sockets, and for all of them on the same keys, at 1 s.

    `naive` is what they would ask if each socket polled for itself.
    """
    keys = rig.keys[: len(rig.keys) // FEW]
    figures: dict[str, float] = {}
    for count in (rig.sockets // FEW, rig.sockets):
        with rig.edge() as edge:
            edge.clients.ask("open", count)
            edge.clients.ask("subscribe", rig.store, keys, 1000, 0, 1)
            time.sleep(WARM_UP_S)
            with rig.writer.writing(keys, RATE / FEW):
                keys_per_s, calls_per_s = _upstream(rig, edge)
        figures |= {
            f"upstream_keys_per_s.{count}": keys_per_s,
            f"upstream_calls_per_s.{count}": calls_per_s,
            f"naive_calls_per_s.{count}": count,
        }
    return figures


def edges(rig: EdgeRig) -> dict[str, float]:
    """What the query service is asked, and what CPU that takes it, when several edges watch the same keys at 1 s."""
    keys = rig.keys[: len(rig.keys) // FEW]
    figures: dict[str, float] = {}
    for count in EDGES:
        with ExitStack() as stack:
            running = [stack.enter_context(rig.edge()) for _ in range(count)]
            for edge in running:
                edge.clients.ask("open", len(keys))
                edge.clients.ask("subscribe", rig.store, keys, 1000, 0, 1)
            time.sleep(WARM_UP_S)
            with rig.writer.writing(keys, RATE / FEW):
                used_s = rig.query_cpu_s()
                keys_per_s, calls_per_s = _upstream(rig, running[0])
                used_s = rig.query_cpu_s() - used_s
        figures |= {
            f"upstream_keys_per_s.edges_{count}": keys_per_s,
            f"upstream_calls_per_s.edges_{count}": calls_per_s,
            f"query_cpu_ms_per_s.edges_{count}": round(used_s * 1000 / rig.seconds, 1),
        }
    return figures


def stalled(rig: EdgeRig) -> dict[str, float]:
    """The ages at interval 0 beside many clients that do not read at all, and the memory that each of those costs."""
    readers = round(rig.sockets * (1 - STALLED_SHARE))
    wide = [f"wide-{number}" for number in range(WIDE_KEYS)]
    rig.writer.write(wide, WIDE)
    with rig.edge() as edge:
        edge.clients.ask("open", readers)
        edge.clients.ask("open", rig.sockets - readers, True)
        edge.clients.ask("subscribe", rig.store, wide, 100, readers, WIDE_KEYS)
        edge.clients.ask("stop_reading", readers)
        before = edge.rss_kb
        for _ in range(WIDE_ROUNDS):
            rig.writer.write(wide, WIDE)
            time.sleep(PAUSE_S)
        wait_until(lambda: edge.metric("ws_edge_skipped_total") > 0, "versions are skipped")
        after = edge.rss_kb
        skipped = edge.metric("ws_edge_skipped_total")
        edge.clients.ask("subscribe", rig.store, rig.keys, 0, 0, 1, readers)
        figures = _listen(rig, edge, ".stalled")
        still = edge.metric("ws_edge_sockets")
    return figures | {
        "stalled_sockets": still - readers,
        "stalled_skipped": skipped,
        "stalled_socket_rss_kb": round((after - before) / (rig.sockets - readers), 1),
    }


def hot_key(rig: EdgeRig) -> dict[str, float]:
    """The ages when all sockets watch one key, which changes five times a second."""
    with rig.edge() as edge:
        edge.clients.ask("open", rig.sockets)
        edge.clients.ask("subscribe", rig.store, rig.keys[:1], 0, 0, 1)
        time.sleep(WARM_UP_S)
        with rig.writer.writing(rig.keys[:1], ONE_KEY_RATE):
            _, samples = edge.clients.ask("listen", rig.seconds, True)
    return percentiles("age_ms", samples, ".hot_key")


def frames(rig: EdgeRig) -> dict[str, float]:
    """The frames that one edge delivers in a second, when more are asked for than it can."""
    with rig.edge() as edge:
        edge.clients.ask("open", round(rig.sockets * HOT_SOCKETS))
        edge.clients.ask("subscribe", rig.store, rig.keys[:HOT_KEYS], 0, 0, HOT_KEYS)
        with rig.writer.writing(rig.keys[:HOT_KEYS], HOT_RATE):
            time.sleep(WARM_UP_S)
            per_s, _ = edge.clients.ask("listen", rig.seconds, False)
    return {"frames_per_s": round(per_s)}


def _listen(rig: EdgeRig, edge: EdgeProcess, suffix: str) -> dict[str, float]:
    with rig.writer.writing(rig.keys, RATE):
        time.sleep(WARM_UP_S)
        keys_before, calls_before = rig.upstream()
        began = time.monotonic()
        _, samples = edge.clients.ask("listen", rig.seconds, True)
        keys, calls = rig.upstream()
        seconds = time.monotonic() - began
    return percentiles("age_ms", samples, suffix) | {
        f"upstream_keys_per_s{suffix}": round((keys - keys_before) / seconds),
        f"upstream_calls_per_s{suffix}": round((calls - calls_before) / seconds, 1),
    }


def _upstream(rig: EdgeRig, edge: EdgeProcess) -> tuple[float, float]:
    keys_before, calls_before = rig.upstream()
    began = time.monotonic()
    edge.clients.ask("listen", rig.seconds, False)
    keys, calls = rig.upstream()
    seconds = time.monotonic() - began
    return round((keys - keys_before) / seconds), round((calls - calls_before) / seconds, 1)


REVOKING_EDGES = 2
REVOKED_SOCKETS = 0.1
"""A tenth of the sockets of the other measurements, over both edges."""
REVOKED_KEYS = 10
REVOKED_RATE = 200
REVOKED = 4403


def revocation(rig: EdgeRig) -> dict[str, float]:
    """From the call to the last frame and to the last close, while all sockets are told of ten keys all the time."""
    consumer = f"bench-revoked-{time.time_ns()}"
    count = round(rig.sockets * REVOKED_SOCKETS / REVOKING_EDGES)
    with ExitStack() as stack:
        edges = [stack.enter_context(rig.edge(kafka_bootstrap=rig.cluster.bootstrap)) for _ in range(REVOKING_EDGES)]
        for edge in edges:
            edge.clients.ask("open", count, False, consumer)
            edge.clients.ask("subscribe", rig.store, rig.keys[:REVOKED_KEYS], 0, 0, 1)
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
    headers = {
        "Content-Type": "application/json",
        "X-Gateway-Secret": SECRET,
        "X-Consumer-Custom-ID": "bench-operator",
        "X-Consumer-Groups": "staff",
    }
    body = json.dumps({"consumer": consumer}).encode()
    with urlopen(Request(f"http://{address}/v1/revocations", body, headers), timeout=30) as answer:
        answer.read()


MEASUREMENTS: Mapping[str, Callable[[EdgeRig], dict[str, float]]] = {
    "sockets": sockets,
    "ages": ages,
    "upstream": upstream,
    "edges": edges,
    "stalled": stalled,
    "hot_key": hot_key,
    "frames": frames,
    "resumes": resumes,
    "revocation": revocation,
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
    settings={
        "changes_per_s": RATE,
        "stalled_share": STALLED_SHARE,
        "query_instances": 2,
        "edges": 1,
    },
    measure=measure,
)

if __name__ == "__main__":
    sys.exit(SUITE.main())
