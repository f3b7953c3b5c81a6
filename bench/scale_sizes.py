"""Measures instances of the query service while one size grows: rows, partitions, instances or stores."""

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import uvloop

from bench.lookups import measure_gets
from bench.query import LOOKED_UP, failover, spread_keys
from bench.query_restore import timed_start
from bench.query_rig import QueryRig, query_rig
from testkit.keyed_topic_writers import write_rows
from testkit.query_cluster import MESSAGE, STORE, QueryInstance

SETTLE_S = 5.0
REST_S = 10.0
ROWS_OF_FURTHER_STORES = 1_000


@dataclass(frozen=True)
class Sizes:
    """The sizes of a cluster; each store has so many `partitions`, and the first one all `rows`."""

    rows: int = 100_000
    partitions: int = 4
    instances: int = 2
    stores: int = 1


AXES = {
    "rows": (1_000_000, 10_000_000),
    "partitions": (64, 256),
    "instances": (4, 8),
    "stores": (10, 100),
}
"""The values to which each size grows while the others stay as `Sizes` has them: those are the point `base`."""


def points() -> dict[str, Sizes]:
    """Returns the measured clusters by name."""
    grown = {f"{axis}_{value}": replace(Sizes(), **{axis: value}) for axis, values in AXES.items() for value in values}
    return {"base": Sizes(), **grown}


def size(point: str) -> dict[str, float]:
    """Measures one cluster of real processes: alone, together at rest, under gets, and when one is killed.

    `restart_s` and `restore_s` are one instance alone, from the start of its process until it serves all, with its disk
    and from the topic with an empty one. `rss_mb` and `disk_mb` are the mean of the instances, `rest_cores` the sum.
    """
    sizes = points()[point]
    names = [f"query-{number}" for number in range(1, sizes.instances + 1)]
    with query_rig(sizes.rows, names, sizes.partitions) as rig:
        for number in range(1, sizes.stores):
            rig.cluster.add_store(f"store-{number:03d}", MESSAGE)
            write_rows(rig.cluster.bootstrap, f"store-{number:03d}", ROWS_OF_FURTHER_STORES, 1)
        measured = _starts(rig, sizes) | _rest(rig.only(*names)) | _reads(rig)
    return {f"{metric}.{point}": figure for metric, figure in measured.items()}


def slopes(figures: Mapping[str, float]) -> dict[str, float]:
    """Returns how each metric grows with each size, from the base to the largest: 1 as the size itself, 0 not at all.

    It is the exponent of a power law through both points. A figure that is 0 has none.
    """
    growth = {}
    for name, first in figures.items():
        metric, _, point = name.rpartition(".")
        for axis, values in AXES.items() if point == "base" else ():
            last = figures.get(f"{metric}.{axis}_{values[-1]}", 0)
            if first > 0 and last > 0:
                ratio = values[-1] / getattr(Sizes(), axis)
                growth[f"{metric}_slope.{axis}"] = round(math.log(last / first) / math.log(ratio), 2)
    return growth


def _starts(rig: QueryRig, sizes: Sizes) -> dict[str, float]:
    [instance] = rig.only(rig.names[0])
    instance.drain(60)
    restart = timed_start(rig, instance, sizes.partitions * sizes.stores)
    instance.drain(60)
    instance.wipe()
    restore = timed_start(rig, instance, sizes.partitions * sizes.stores)
    return {
        "restart_s": round(restart["restore_start_ms"] / 1000, 1),
        "restore_s": round(restore["restore_start_ms"] / 1000, 1),
    }


def _rest(instances: Sequence[QueryInstance]) -> dict[str, float]:
    time.sleep(SETTLE_S)
    began_s, used_s = time.monotonic(), sum(each.cpu_s for each in instances)
    time.sleep(REST_S)
    cores = (sum(each.cpu_s for each in instances) - used_s) / (time.monotonic() - began_s)
    return {
        "rest_cores": round(cores, 3),
        "rss_mb": round(sum(each.rss_bytes for each in instances) / len(instances) / 1e6, 1),
        "disk_mb": round(sum(_disk_bytes(each.data) for each in instances) / len(instances) / 1e6, 1),
    }


def _reads(rig: QueryRig) -> dict[str, float]:
    first, *_ = rig.only(*rig.names)
    gets = uvloop.run(measure_gets(first.address, spread_keys(rig.rows, LOOKED_UP), STORE))
    kept = ("gets_per_s.owner", "get_ms_p99.owner", "gets_per_s.forwarded")
    return {name.replace(".", "_"): gets[name] for name in kept} | {
        name: figure for name, figure in failover(rig).items() if not name.endswith(".calm")
    }


def _disk_bytes(directory: Path) -> int:
    """Returns the bytes that the files take on the disk."""
    return sum(path.stat().st_blocks * 512 for path in directory.rglob("*") if path.is_file())
