"""A process is killed in the first batch of its queries, wherever that has come to; the next one goes on by itself."""

import shutil
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from uuid import uuid4

import pytest
import yaml
from confluent_kafka import Producer

from statecast.orders.v1.order_pb2 import OrderChange
from testkit.stream_processor.changes import change, order
from testkit.stream_processor.model import by_order, model, wait_for_state
from testkit.stream_processor.pipeline_files import latest_orders
from testkit.stream_processor.process import ProcessorOf, wait_until
from testkit.topics import create_topic, read_topic

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.long, pytest.mark.timeout(900)]

COMMITTED = "committed"
"""A query that the kill finds with a commit."""
TORN = f".0.{uuid4()}.tmp"
"""A file that Spark was writing."""


class Checkpoint:
    """A checkpoint in its first batch, with the `offsets` of that batch; each method leaves it as another kill does."""

    def __init__(self, place: Path, offsets: str) -> None:
        self.place, self.offsets = place, offsets
        (place / "commits" / "0").unlink(missing_ok=True)

    def with_state(self) -> None:
        (self.place / "offsets" / "0").unlink(missing_ok=True)

        assert [*(self.place / "state").iterdir()]

    def with_torn_offsets(self) -> None:
        (self.place / "offsets" / "0").unlink(missing_ok=True)
        (self.place / "offsets" / TORN).write_text("v1\n")

    def with_offsets(self) -> None:
        (self.place / "offsets" / "0").write_text(self.offsets)

    def with_torn_commit(self) -> None:
        self.with_offsets()
        (self.place / "commits" / TORN).write_text("v2\n")

    def with_torn_source(self) -> None:
        for each in ("commits", "offsets", "state", "sources/0"):
            shutil.rmtree(self.place / each)
        (self.place / "sources" / "0").mkdir()
        (self.place / "sources" / "0" / TORN).write_text("0v1\n")

    def with_torn_metadata(self) -> None:
        shutil.rmtree(self.place)
        self.place.mkdir()
        (self.place / f".metadata.{uuid4()}.tmp").write_text("{")


KILLS = {name.replace("_", "-"): leave for name, leave in vars(Checkpoint).items() if name.startswith("with_")}
"""By names of pipelines."""


def test_queries_go_on_from_whatever_a_kill_leaves(kafka: str, tmp_path: Path, processor_of_files: ProcessorOf) -> None:
    prefix = f"{uuid4().hex[:8]}."
    names = [*KILLS, COMMITTED]
    for topic in ("orders", "orders.dead-letter", *names):
        create_topic(kafka, prefix + topic, partitions=1)
    intervals = {**dict.fromkeys(KILLS, "1h"), COMMITTED: "5s"}
    files = [tmp_path / f"{name}.yaml" for name in names]
    for name, file in zip(names, files, strict=True):
        sink = {"topic": prefix + name}
        file.write_text(yaml.safe_dump(latest_orders(prefix, intervals[name], name=name, sink=sink, parallelism=1)))
    processor = processor_of_files(*files)
    producer = Producer({"bootstrap.servers": kafka})
    changes = [change(None, order(f"order-{number}"), number) for number in range(1, 5)]

    def send(some: Sequence[OrderChange]) -> None:
        for each in some:
            producer.produce(f"{prefix}orders", value=each.SerializeToString(), partition=0)
        producer.flush()

    def wait_for_rows_of(some: Sequence[OrderChange]) -> None:
        for name in names:
            wait_for_state(partial(read_topic, kafka, prefix + name), model(some, by_order), processor)

    send(changes[:2])
    processor.start()
    wait_for_rows_of(changes[:2])
    checkpoints = tmp_path / "checkpoints"
    wait_until((checkpoints / COMMITTED / "commits" / "0").exists, lambda: processor.log)
    processor.kill()
    offsets = (checkpoints / COMMITTED / "offsets" / "0").read_text()
    for name, leave in KILLS.items():
        leave(Checkpoint(checkpoints / name, offsets))

    send(changes[2:])
    processor.start()
    wait_for_rows_of(changes)
    assert processor.metric("stream_processor_query_failures_total") == 0
    assert "CHECKPOINT_LOCATION_NOT_EMPTY" not in processor.log
    assert processor.stop() == 0
