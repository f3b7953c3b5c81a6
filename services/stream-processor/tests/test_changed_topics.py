"""Topics that grow, or are deleted and made anew, under a processor that runs: their pipelines alone stand still."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewPartitions  # type: ignore[attr-defined]  # not in its __all__

from statecast.orders.v1.order_pb2 import OrderChange
from statecast.sales.v1.store_pb2 import Store
from testkit.stream_processor.changes import change, order
from testkit.stream_processor.model import by_order, model, read_fenced, wait_for_state
from testkit.stream_processor.process import Processor, ProcessorOf, wait_until
from testkit.topics import create_topic, read_topic

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.long, pytest.mark.timeout(900)]

PREFIX = "changed."
COMPACTED = {"cleanup.policy": "compact", "min.compaction.lag.ms": "86400000"}
TABLES = ("growing", "remade", "kept")
GROWN = f"{PREFIX}growing has 4 partitions and had 1: only the order of offsets"
REMADE = f"{PREFIX}remade was deleted"


def table(name: str) -> dict[str, object]:
    """Returns a pipeline of the rows of a topic, ordered by offset; one that is made anew is read in real time."""
    return {
        "name": f"{name}-latest",
        "source": {"topic": name, "message": "statecast.sales.v1.Store", "format": "table", "values": "json"},
        "group_by": "store_id",
        "keep": "latest",
        "sink": {"topic": f"{name}-latest"},
        "trigger": {"mode": "realtime"} if name == "remade" else {"mode": "micro-batch", "interval": "1s"},
    }


class Scene:
    """The topics of three tables and of a shipped pipeline of changes, with one partition each."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap
        self._producer = Producer({"bootstrap.servers": bootstrap})
        self._admin = AdminClient({"bootstrap.servers": bootstrap})
        self._changes: list[OrderChange] = []
        for name in (*TABLES, *(f"{name}-latest" for name in TABLES), "orders-by-key"):
            create_topic(bootstrap, PREFIX + name, 1, COMPACTED)
        for name in ("orders", *(f"{name}.dead-letter" for name in (*TABLES, "orders"))):
            create_topic(bootstrap, PREFIX + name, 1)

    def write(self, topic: str, name: str, *numbers: int) -> None:
        for number in numbers:
            value = json.dumps({"store_id": f"s{number % 14}", "name": name})
            self._producer.produce(PREFIX + topic, value, f"s{number % 14}", 0)
        self._producer.flush()

    def write_order(self, partition: int) -> None:
        number = len(self._changes) + 1
        self._changes.append(change(None, order(f"order-{number}"), number))
        producer = Producer({"bootstrap.servers": self.bootstrap})  # another one knows partitions that have come late
        producer.produce(f"{PREFIX}orders", self._changes[-1].SerializeToString(), b"key", partition)
        producer.flush()

    def rows(self, topic: str) -> dict[str, str]:
        latest = read_fenced(read_topic(self.bootstrap, f"{PREFIX}{topic}-latest")).items()
        return {key: Store.FromString(each.payload).name for key, each in latest}

    def wait_for_orders(self, processor: Processor) -> None:
        wanted = model(self._changes, by_order)
        wait_for_state(lambda: read_topic(self.bootstrap, f"{PREFIX}orders-by-key"), wanted, processor)

    def grow(self, *names: str) -> None:
        for each in self._admin.create_partitions([NewPartitions(PREFIX + name, 4) for name in names]).values():
            each.result()

    def make_anew(self, name: str) -> None:
        self._admin.delete_topics([PREFIX + name])[PREFIX + name].result()

        def is_made() -> bool:
            try:
                create_topic(self.bootstrap, PREFIX + name, 1, COMPACTED)
            except KafkaException:  # the broker is still deleting the former one
                return False
            return True

        wait_until(is_made, f"{name} is not made anew")


def test_a_pipeline_stands_still_alone_when_its_topic_grows_or_is_made_anew(
    kafka: str, tmp_path: Path, start_processor: ProcessorOf
) -> None:
    scene = Scene(kafka)
    (tmp_path / "own").mkdir()
    files = [tmp_path / "own" / f"{name}-latest.yaml" for name in TABLES]
    for file, name in zip(files, TABLES, strict=True):
        file.write_text(yaml.safe_dump(table(name)))
        scene.write(name, "old", *range(14))
    scene.write_order(partition=0)
    processor = start_processor(PREFIX, more=files, named=("orders/orders-by-key",), checkpoint_interval="5s")

    def wait_for(is_so: Callable[[], bool]) -> None:
        wait_until(is_so, lambda: processor.log[-3000:])

    processor.start_ready()
    wait_for(lambda: all(len(scene.rows(topic)) == 14 for topic in TABLES))

    scene.grow("growing", "orders")
    wait_for(lambda: GROWN in processor.log)
    scene.make_anew("remade")
    scene.write("remade", "new", *range(60))
    wait_for(lambda: REMADE in processor.log)

    scene.write("kept", "new", 1)
    wait_for(lambda: scene.rows("kept")["s1"] == "new")
    scene.write_order(partition=3)
    scene.wait_for_orders(processor)
    _, metrics = processor.get("/metrics")
    for name, value in {"growing": "0.0", "remade": "0.0", "kept": "1.0"}.items():
        assert f'stream_processor_query_up{{query="{name}-latest"}} {value}' in metrics
    assert processor.stop() == 0

    count = processor.log.count(GROWN)
    processor.start_ready()
    scene.write("kept", "newer", 2)
    wait_for(lambda: scene.rows("kept")["s2"] == "newer")
    assert processor.log.count(GROWN) == count + 1
    assert "growing-latest.yaml is refused: " in processor.get("/readyz")[1]
    assert processor.metric("stream_processor_refused_files") == 2
    assert processor.stop() == 0
