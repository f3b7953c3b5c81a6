"""A replay's older record stands behind the newer one when Kafka compacts the topic."""

import time
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from confluent_kafka import Producer

from statecast.partitioning import partition_of
from testkit.query_instances import Scene
from testkit.query_service import encoded_state
from testkit.repository_files import TOPICS
from testkit.topics import create_topic, read_topic
from testkit.waiting import wait_until

pytestmark = pytest.mark.timeout(180)

DAYS_MS = 3 * 86_400_000
AT_ONCE = {"segment.ms": "1000", "min.cleanable.dirty.ratio": "0.001"}
"""Settings with which the broker's cleaner removes every record that `min.compaction.lag.ms` allows."""


def config_of(topic: str) -> dict[str, str]:
    declared = yaml.safe_load(TOPICS.read_text())["topics"]
    return next(dict(each["config"]) for each in declared if each["name"] == topic)


async def test_a_replica_that_is_rebuilt_has_the_newer_row(
    kafka: str, make_scene: Callable[[str, str], Scene], tmp_path: Path
) -> None:
    topic = f"orders-by-key-{tmp_path.name}"
    create_topic(kafka, topic, 4, config_of("orders-by-key") | AT_ONCE)
    scene = make_scene(topic, f"stores: [{{name: rows, topic: {topic}, message: statecast.orders.v1.Order}}]")
    producer, partition = Producer({"bootstrap.servers": kafka}), partition_of("alice", 4)
    now_ms = time.time_ns() // 10**6

    def write(key: str, sequence: int, time_ms: int) -> None:
        record = encoded_state(sequence, f"version {sequence}".encode())
        producer.produce(topic, record, key.encode(), partition, timestamp=time_ms)
        producer.flush(10)

    for sequence in (1, 2):
        write("aged", sequence, now_ms - DAYS_MS)
    write("alice", 5, now_ms)
    write("alice", 4, now_ms)  # the processor died, replays, and dies again
    for later_ms in (2_000, 4_000):  # closes the segment with the replay
        write("filler", later_ms, now_ms + later_ms)
    wait_until(lambda: read_topic(kafka, topic)[0].offset == 1, "the cleaner has not come", timeout_s=90)

    rebuilt = scene.launch("query-1")
    await scene.until_applied(rebuilt, 5, 4)

    assert await rebuilt.served("alice") == b"version 5"
    await scene.close()
