"""The same program on a standalone Spark cluster: a lost worker costs a start, and nothing else."""

import random
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from threading import Thread
from uuid import uuid4

import pytest
import yaml
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]  # not in its __all__

from statecast.orders.v1.order_pb2 import Order, OrderChange
from testkit.ports import free_ports
from testkit.stream_processor.changes import change, order
from testkit.stream_processor.cluster import Cluster
from testkit.stream_processor.model import by_customer, by_order, model, wait_for_state
from testkit.stream_processor.pipeline_files import write_prefixed
from testkit.stream_processor.process import Processor, wait_until
from testkit.topics import read_topic

CHANGES = 10_000
CORES = 5
"""The task slots of each worker: two workers have enough, one has not."""
PIPELINES = Path(__file__).parents[3] / "domains"
KEYS = {"orders-by-key": by_order, "orders-by-customer": by_customer}

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.long, pytest.mark.timeout(1200)]


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    cluster = Cluster(tmp_path, free_ports(1)[0])
    yield cluster
    cluster.close()


@pytest.fixture
def processor(
    tmp_path: Path, kafka: str, prefix: str, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Processor]:
    for name, value in cluster.client_environment().items():
        monkeypatch.setenv(name, value)
    files = [written(name, tmp_path, prefix) for name in KEYS]
    processor = Processor(tmp_path, kafka, free_ports(1)[0], files, checkpoint_interval="5s", master=cluster.master)
    yield processor
    processor.close()


@pytest.fixture
def prefix(kafka: str) -> str:
    unique = f"{uuid4().hex[:8]}."
    names = [unique + name for name in ("orders", "orders.dead-letter", *KEYS)]
    new = [NewTopic(name, num_partitions=4, replication_factor=1) for name in names]
    admin = AdminClient({"bootstrap.servers": kafka})
    for result in admin.create_topics(new).values():
        result.result()
    return unique


def written(name: str, directory: Path, prefix: str) -> Path:
    content = yaml.safe_load(next(PIPELINES.rglob(f"{name}.yaml")).read_text())
    return write_prefixed(directory / f"{name}.yaml", content, prefix)


def history() -> Iterator[OrderChange]:
    """Changes of 500 orders that move between customers, are deleted, and are created again."""
    chance = random.Random(7)
    rows: dict[str, Order] = {}
    for sequence in range(1, CHANGES + 1):
        order_id = f"order-{chance.randrange(500)}"
        before = rows.pop(order_id, None)
        if before is None or chance.random() > 0.1:
            rows[order_id] = order(order_id, f"customer-{chance.randrange(30)}", second=sequence / 1000)
        yield change(before, rows.get(order_id), sequence)


def send(changes: list[OrderChange], bootstrap: str, topic: str) -> None:
    """About a thousand changes a second."""
    producer = Producer({"bootstrap.servers": bootstrap})
    for each in changes:
        row = each.after if each.HasField("after") else each.before
        producer.produce(topic, key=row.order_id.encode(), value=each.SerializeToString())
        producer.poll(0.001)
    producer.flush()


def test_queries_of_a_killed_worker_go_on_at_another_one_in_the_same_process(
    kafka: str, tmp_path: Path, prefix: str, cluster: Cluster, processor: Processor
) -> None:
    cluster.start_master()
    cluster.start_worker("worker-1", CORES)
    processor.start()
    wait_until(lambda: f"give {CORES} task slots" in processor.get("/readyz")[1], lambda: processor.log)
    cluster.start_worker("worker-2", CORES)
    processor.wait_ready()
    changes = list(history())
    flow = Thread(target=send, args=(changes, kafka, f"{prefix}orders"))
    flow.start()
    wait_until(lambda: all(map(partial(has_checkpoint, tmp_path), KEYS)), lambda: processor.log)

    cluster.kill_worker("worker-1")
    wait_until(lambda: "a query has failed" in processor.log, lambda: processor.log)
    assert processor.get("/readyz")[0] == 200
    cluster.start_worker("worker-3", CORES)
    flow.join()

    for name, keys in KEYS.items():
        wait_for_state(partial(read_topic, kafka, prefix + name), model(changes, keys), processor)
    assert processor.stop() == 0


def has_checkpoint(directory: Path, name: str) -> bool:
    return (directory / "checkpoints" / name / "commits" / "0").exists()
