"""How long an instance with an empty disk takes until it serves all rows, alone."""

import re
import time

from bench import query_restore
from bench.peer_systems import PeerCluster, System, serves, wait_current
from bench.query_rig import QueryRig, wait_until
from testkit.keyed_topic_writers import order_key
from testkit.query_cluster import PARTITIONS, QueryCluster

LOOK_EVERY_S = 0.02
DRAIN_S = 60.0
SAMPLE = 50


def restore_peer(cluster: PeerCluster, rows: int, version: int) -> dict[str, float]:
    """The rate is that of Kafka Streams' restore listener, from the first partition's start to the last one's end."""
    [instance] = System("peer", cluster).only("peer-1")
    wait_current(instance.address, [order_key(number) for number in range(rows - SAMPLE, rows)], version)
    instance.drain(DRAIN_S)
    cluster.wait_left()
    instance.wipe()
    restarted = cluster.instances["peer-1"]
    logged = len(restarted.log)
    began = time.monotonic()
    restarted.start()
    wait_until(lambda: serves(instance.address, {instance.address}), LOOK_EVERY_S)
    seconds = time.monotonic() - began
    return {"restore_rows_per_s": restored_per_s(restarted.log[logged:], PARTITIONS), "restore_s": round(seconds, 2)}


def restore_ours(cluster: QueryCluster) -> dict[str, float]:
    """Returns the figures of bench.query_restore under the names that they have here."""
    figures = query_restore.restore(QueryRig(cluster, 0))
    seconds = figures["restore_start_ms"] / 1000
    return {"restore_rows_per_s": figures["restore_rows_per_s"], "restore_s": round(seconds, 2)}


def restored_per_s(log: str, partitions: int) -> float:
    """Returns the rows a second that the peer's log tells of.

    Raises ValueError when it does not tell of each partition.
    """
    lines = re.findall(r"^restored (\d+) (\d+) (\d+) (\d+)$", log, re.MULTILINE)
    restored = {int(partition): (int(start), int(end), int(rows)) for partition, start, end, rows in lines}
    if len(restored) != partitions:
        raise ValueError(f"{len(restored)} of {partitions} partitions were restored")
    first, last = min(start for start, _, _ in restored.values()), max(end for _, end, _ in restored.values())
    return round(sum(rows for _, _, rows in restored.values()) * 1000 / (last - first))
