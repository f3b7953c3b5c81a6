"""An instance that is killed in the middle of a restore goes on with it."""

from pathlib import Path

import pytest
from confluent_kafka import Producer

from query_service.storage.inspection import inspect
from statecast.partitioning import partition_of
from testkit.pytest_plugin import CreateTopic
from testkit.query_instances import MakeScene, Scene
from testkit.query_service import encoded_state

pytestmark = pytest.mark.timeout(240)

PARTITIONS = 4
GROUPS = [f"order-{number:06d}" for number in range(60_000)]


def write_all(kafka: str, topic: str, sequence: int) -> None:
    producer = Producer({"bootstrap.servers": kafka, "queue.buffering.max.messages": len(GROUPS)})
    for group in GROUPS:
        record = encoded_state(sequence, f"{group} {sequence}".encode())
        producer.produce(topic, record, group.encode(), partition_of(group, PARTITIONS))
    producer.flush(60)


@pytest.fixture
def topic(kafka: str, create_topic: CreateTopic) -> str:
    """A topic with two records of each key."""
    name = create_topic("rows", partitions=PARTITIONS)
    for sequence in (1, 2):
        write_all(kafka, name, sequence)
    return name


@pytest.fixture
def scene(topic: str, make_scene: MakeScene) -> Scene:
    return make_scene(topic, f"stores: [{{name: rows, topic: {topic}, message: statecast.orders.v1.Order}}]")


async def test_a_kill_in_the_middle_costs_time_and_no_row(scene: Scene, tmp_path: Path) -> None:
    one = scene.launch("query-1", replicas=1)
    await scene.until(lambda: "holding" in one.log and one.metric("query_service_applied_offset") > 0, one)
    one.kill()
    again = scene.launch("query-1", replicas=1)
    await scene.until_applied(again, 2 * len(GROUPS))
    inspection = inspect(tmp_path / "query-1")
    restored = again.metric("query_service_restore_records_total")
    left = again.metric("query_service_restore_left")
    await scene.close()
    settled = inspect(tmp_path / "query-1")

    assert restored > 0
    assert left == 0
    assert inspection.unreadable == ()
    assert sum(each.rows for each in settled.partitions) == len(GROUPS)
    assert sum(each.next_offset for each in settled.partitions) == 2 * len(GROUPS)
