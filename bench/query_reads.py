"""How many lookups and rows a second one client gets out of two instances that have every row."""

import time
from collections.abc import Sequence
from typing import Any

import grpc
import uvloop
from drivers.query_cluster import STORE

from bench import lookups
from bench.query_rig import NAMES, QueryRig
from bench.query_rows import key_of
from statecast.query.v1.query_service_pb2 import ScanStatesRequest
from statecast.query.v1.query_service_pb2_grpc import QueryServiceStub

LOOKED_UP = 2_000
SCAN_S = 4.0
PAGE = 1_000


def gets(rig: QueryRig) -> dict[str, float]:
    """Single gets to the owner and through a forward, and batches of 500 keys, all changed or none."""
    first, _ = rig.only(*NAMES)
    keys = _spread(rig.rows)
    return uvloop.run(lookups.measure(first.address, keys, STORE))


def scan(rig: QueryRig) -> dict[str, float]:
    """The whole store in key order through one instance, and what that one owns itself, a page after the other."""
    first, _ = rig.only(*NAMES)
    return {
        "scan_rows_per_s": _rows_per_s(first.address, local_only=False),
        "scan_rows_per_s.local": _rows_per_s(first.address, local_only=True),
    }


def _spread(rows: int) -> Sequence[str]:
    step = max(1, rows // LOOKED_UP)
    return [key_of(number) for number in range(0, rows, step)][:LOOKED_UP]


def _rows_per_s(address: str, *, local_only: bool) -> float:
    began, rows = time.monotonic(), 0
    query = ScanStatesRequest(store=STORE, page_size=PAGE, local_only=local_only)
    with grpc.insecure_channel(address) as channel:
        stub: Any = QueryServiceStub(channel)
        while time.monotonic() - began < SCAN_S:
            page = stub.ScanStates(query, timeout=60)
            rows += len(page.states)
            query.page_token = page.next_page_token
    return round(rows / (time.monotonic() - began))
