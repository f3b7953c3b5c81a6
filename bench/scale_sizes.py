"""Measures instances of the query service while one size grows: rows, partitions, instances or stores."""

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

import uvloop

from bench.lookups import measure_gets
from bench.query import LOOKED_UP, failover, keys_by_owner, spread_keys
from bench.query_restore import timed_start
from bench.query_rig import QueryRig, query_rig
from testkit.keyed_topic_writers import write_rows
from testkit.query_cluster import MESSAGE, STORE, QueryInstance

SETTLE_S = 5.0
REST_S = 10.0
"""So long that the metric of bytes on disk, which is set every ten seconds, is of after the start."""
ROWS_OF_FURTHER_STORES = 1_000


@dataclass(frozen=True)
class Sizes:
    """The sizes of a cluster; each store has so many `partitions`, and the first one all `rows`."""

    rows: int = 100_000
    partitions: int = 4
    instances: int = 2
    stores: int = 1

    @property
    def point(self) -> str:
        """The name: `base`, or the sizes that differ from it."""
        grown = [f"{axis}_{value}" for axis, value in asdict(self).items() if value != getattr(Sizes(), axis)]
        return "_".join(grown) or "base"


AXES = {
    "rows": [Sizes(rows=value) for value in (100_000, 1_000_000, 10_000_000)],
    "partitions": [Sizes(partitions=value) for value in (4, 64, 256)],
    "instances": [Sizes(partitions=64, instances=value) for value in (2, 10, 50)],
    "stores": [Sizes(stores=value) for value in (1, 10, 100)],
}
"""The clusters in which one size grows and the others stay; of 4 partitions, most of 50 instances would hold none."""

LARGE = Sizes(partitions=16, instances=50, stores=100)
"""A cluster of which only the membership, the listing of partitions and the first map are measured."""


def points(*axes: str) -> dict[str, Sizes]:
    """Returns the clusters of these axes by name, each once."""
    return {sizes.point: sizes for axis in axes or AXES for sizes in AXES[axis]}


def size(sizes: Sizes) -> dict[str, float]:
    """Measures one cluster of real processes: alone, together at rest, under gets, and when one is killed.

    `restart_s` and `restore_s` are one instance alone, from the start of its process until it serves all, with its disk
    and from the topic with an empty one. `rss_mb` and `disk_mb` are the mean of the instances, `rest_cores` the sum;
    `disk_mb` leaves out partitions that moved away as instances joined.
    """
    names = [f"query-{number}" for number in range(1, sizes.instances + 1)]
    with query_rig(sizes.rows, names, sizes.partitions) as rig:
        for number in range(1, sizes.stores):
            rig.cluster.add_store(f"store-{number:03d}", MESSAGE)
            write_rows(rig.cluster.bootstrap, f"store-{number:03d}", ROWS_OF_FURTHER_STORES, 1)
        return _starts(rig, sizes) | _rest(rig.only(*names)) | _reads(rig)


def slopes(figures: Mapping[str, float]) -> dict[str, float]:
    """Returns how each metric grows along each axis, from the first point to the last: 1 as the size, 0 not at all.

    It is the exponent of a power law through both points. A figure that is 0 has none.
    """
    growth = {}
    for metric in dict.fromkeys(name.rpartition(".")[0] for name in figures):
        for axis, (first, *_, last) in AXES.items():
            low, high = (figures.get(f"{metric}.{sizes.point}", 0) for sizes in (first, last))
            if low > 0 and high > 0:
                ratio = getattr(last, axis) / getattr(first, axis)
                growth[f"{metric}_slope.{axis}"] = round(math.log(high / low) / math.log(ratio), 2)
    return growth


def _starts(rig: QueryRig, sizes: Sizes) -> dict[str, float]:
    [instance] = rig.only(rig.names[0])
    instance.drain(60)
    restart = timed_start(rig, instance, sizes.partitions * sizes.stores)
    instance.drain(60)
    instance.wipe()
    restore = timed_start(rig, instance, sizes.partitions * sizes.stores)
    instance.drain(60)
    instance.wipe()  # it would keep the memory and the disk of all partitions, of which it has a share from now on
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
        "disk_mb": round(sum(map(_held_bytes, instances)) / len(instances) / 1e6, 1),
    }


def _held_bytes(instance: QueryInstance) -> float:
    return instance.metric("query_service_disk_bytes", kind="held")


def _reads(rig: QueryRig) -> dict[str, float]:
    keys = spread_keys(rig.rows, LOOKED_UP)
    first, *_ = instances = rig.only(*rig.names)
    owners = keys_by_owner(first.address, keys)
    asked = next(each for each in instances if each.name in owners)
    gets = uvloop.run(measure_gets(asked.address, keys, STORE))
    kept = ("gets_per_s.owner", "get_ms_p99.owner", "gets_per_s.forwarded")
    return {name.replace(".", "_"): gets[name] for name in kept} | {
        name: figure for name, figure in failover(rig).items() if not name.endswith(".calm")
    }
