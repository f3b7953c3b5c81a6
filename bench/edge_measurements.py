"""What is measured of an edge: memory, connects, frames, ages and what it asks of the query service."""

import time
from contextlib import ExitStack

from bench.edge_rig import EdgeProcess, EdgeRig, wait_until
from bench.results import percentiles

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
        wait_until(lambda: edge.metric("ws_edge_sockets") == rig.sockets)
        after = edge.rss_kb
    return {
        "connects_per_s": round(rig.sockets / seconds),
        "socket_rss_kb": round((after - before) / rig.sockets, 1),
    }


def ages(rig: EdgeRig) -> dict[str, float]:
    """From commit to client at 1,000 changes a second, each socket with one key, at three intervals."""
    found: dict[str, float] = {}
    for interval_ms in INTERVALS_MS:
        with rig.edge() as edge:
            edge.clients.ask("open", rig.sockets)
            edge.clients.ask("subscribe", rig.store, rig.keys, interval_ms, 0, 1)
            found |= _listen(rig, edge, f".interval_{interval_ms}")
    return found


def upstream(rig: EdgeRig) -> dict[str, float]:
    """What the query service is asked for a tenth of the sockets, and for all of them on the same keys, at 1 s.

    `naive` is what they would ask if each socket polled for itself.
    """
    keys = rig.keys[: len(rig.keys) // FEW]
    found: dict[str, float] = {}
    for count in (rig.sockets // FEW, rig.sockets):
        with rig.edge() as edge:
            edge.clients.ask("open", count)
            edge.clients.ask("subscribe", rig.store, keys, 1000, 0, 1)
            time.sleep(WARM_UP_S)
            with rig.writer.writing(keys, RATE / FEW):
                keys_per_s, calls_per_s = _upstream(rig, edge)
        found |= {
            f"upstream_keys_per_s.{count}": keys_per_s,
            f"upstream_calls_per_s.{count}": calls_per_s,
            f"naive_calls_per_s.{count}": count,
        }
    return found


def edges(rig: EdgeRig) -> dict[str, float]:
    """What the query service is asked, and what CPU that takes it, when several edges watch the same keys at 1 s."""
    keys = rig.keys[: len(rig.keys) // FEW]
    found: dict[str, float] = {}
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
        found |= {
            f"upstream_keys_per_s.edges_{count}": keys_per_s,
            f"upstream_calls_per_s.edges_{count}": calls_per_s,
            f"query_cpu_ms_per_s.edges_{count}": round(used_s * 1000 / rig.seconds, 1),
        }
    return found


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
        wait_until(lambda: edge.metric("ws_edge_skipped_total") > 0)
        after = edge.rss_kb
        skipped = edge.metric("ws_edge_skipped_total")
        edge.clients.ask("subscribe", rig.store, rig.keys, 0, 0, 1, readers)
        found = _listen(rig, edge, ".stalled")
        still = edge.metric("ws_edge_sockets")
    return found | {
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
