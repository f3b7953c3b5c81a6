"""How soon a consumer hears nothing more after a revocation, at the edge that was called and at another."""

import json
import time
from contextlib import ExitStack
from urllib.request import Request, urlopen

from bench.edge_measurements import WARM_UP_S
from bench.edge_rig import SECRET, EdgeRig

EDGES = 2
SOCKETS = 0.1
"""A tenth of the sockets of the other measurements, over both edges."""
KEYS = 10
RATE = 200
REVOKED = 4403


def revocation(rig: EdgeRig) -> dict[str, float]:
    """From the call to the last frame and to the last close, while all sockets are told of ten keys all the time."""
    consumer = f"bench-revoked-{time.time_ns()}"
    count = round(rig.sockets * SOCKETS / EDGES)
    with ExitStack() as stack:
        edges = [stack.enter_context(rig.edge(kafka_bootstrap=rig.cluster.bootstrap)) for _ in range(EDGES)]
        for edge in edges:
            edge.clients.ask("open", count, False, consumer)
            edge.clients.ask("subscribe", rig.store, rig.keys[:KEYS], 0, 0, 1)
        with rig.writer.writing(rig.keys[:KEYS], RATE):
            time.sleep(WARM_UP_S)
            for edge in edges:
                edge.clients.ask("watch_end")
            began = time.monotonic()
            _revoke(edges[0].address, consumer)
            answered = time.monotonic()
            ends = [edge.clients.ask("ended") for edge in edges]
    found = {"revocation_ms.answer": round((answered - began) * 1000, 1)}
    for name, (last_frame, last_close, codes) in zip(("called", "other"), ends, strict=True):
        if codes != {REVOKED}:
            raise ValueError(f"the edge has closed with {codes}, not with {REVOKED} alone")
        found |= {
            f"revocation_ms.last_frame.{name}_edge": round((last_frame - began) * 1000, 1),
            f"revocation_ms.last_close.{name}_edge": round((last_close - began) * 1000, 1),
        }
    return found


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
