"""An executor wakes after another process has gone on from its checkpoint: its commits have no effect."""

import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from uuid import uuid4

import psutil
import pytest
import yaml
from confluent_kafka import Producer

from statecast.orders.v1.order_pb2 import Order, OrderChange, OrderItem
from testkit.ports import free_ports
from testkit.stream_processor.changes import change, order
from testkit.stream_processor.cluster import Cluster
from testkit.stream_processor.model import read_fenced
from testkit.stream_processor.process import Processor, wait_until
from testkit.topics import create_topic, read_topic

ROWS = 40
"""In each part of the story: enough for every partition of the state."""
SLOTS = 6
"""Two partitions each of source, rows and groups."""
VERSION = re.compile(r"(\d+)(_.+)?\.(changelog|zip)")

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.long, pytest.mark.timeout(1200)]


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    cluster = Cluster(tmp_path, free_ports(1)[0])
    environment = cluster.client_environment()
    # Else the first driver would take the executors of the second.
    with (Path(environment["SPARK_CONF_DIR"]) / "spark-defaults.conf").open("a") as settings:
        settings.write(f"spark.cores.max {SLOTS}\n")
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    cluster.start_master()
    yield cluster
    cluster.close()


@pytest.fixture
def topics(kafka: str) -> dict[str, str]:
    prefix = f"{uuid4().hex[:8]}."
    names = {name: prefix + name for name in ("orders", "orders.dead-letter", "sold")}
    for name in names.values():
        create_topic(kafka, name, 2)
    return names


@pytest.fixture
def processors(kafka: str, topics: dict[str, str], tmp_path: Path, cluster: Cluster) -> Iterator[list[Processor]]:
    """Two processes at the same place, which the lease gives to one of them."""
    content = {
        "name": "sold",
        "source": {"topic": topics["orders"], "message": "statecast.orders.v1.OrderChange", "key": "order_id"},
        "group_by": "items.item_id",
        "keep": {"aggregate": {"unit_price_cents": "sum(element.quantity)"}},
        "sink": {"topic": topics["sold"], "message": "statecast.orders.v1.OrderItem"},
    }
    file = tmp_path / "sold.yaml"
    file.write_text(yaml.safe_dump(content))
    where = {"checkpoints": f"file://{tmp_path}/checkpoints", "checkpoint_interval": "5s", "master": cluster.master}
    processors = []
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        processors.append(Processor(tmp_path / name, kafka, free_ports(1)[0], [file], **where))
    yield processors
    for each in processors:
        each.close()


def test_what_a_frozen_executor_commits_when_it_wakes_is_not_read(
    kafka: str, topics: dict[str, str], tmp_path: Path, cluster: Cluster, processors: list[Processor]
) -> None:
    first, second = processors
    checkpoint = tmp_path / "checkpoints" / "sold"
    sold = partial(read_sold, kafka, topics["sold"])
    send = partial(send_changes, kafka, topics["orders"])
    cluster.start_worker("worker-1", SLOTS)
    first.start_ready()
    send([change(None, bought("early", number, 1), number) for number in range(ROWS)])
    wait_until(lambda: committed(checkpoint) >= 0, lambda: first.log)
    # The next changes are in a batch that its executor has begun, and cannot commit before it wakes.
    send([change(None, bought("begun", number, 1), ROWS + number) for number in range(ROWS)])
    wait_until(lambda: len(sold()) == 2 * ROWS, lambda: first.log)
    # Nothing ends their connections. The worker goes on, for it takes the executor's log.
    driver, executors = psutil.Process(first.pid), cluster.executors("worker-1")
    for process in [*executors, *driver.children(recursive=True), driver]:
        process.suspend()

    send([change(None, bought("late", number, 1), 2 * ROWS + number) for number in range(ROWS)])
    cluster.start_worker("worker-2", SLOTS)
    second.start()
    wait_until(lambda: len(sold()) == 3 * ROWS, lambda: second.log)
    batch = committed(checkpoint)
    wait_until(lambda: committed(checkpoint) >= batch + 2, lambda: second.log)
    before = written(checkpoint, batch)
    for executor in executors:
        executor.resume()
    # All partitions of both operators.
    wait_until(lambda: len(written(checkpoint, batch).items() - before.items()) >= 4, "the executor does not commit")
    assert second.stop() == 0
    second.start_ready()
    send([change(bought("late", number, 1), bought("late", number, 5), 3 * ROWS + number) for number in range(ROWS)])

    quantities = {"early": 1, "begun": 1, "late": 5}
    wanted = {f"{name}-{number}": quantity for name, quantity in quantities.items() for number in range(ROWS)}
    wait_until(lambda: sold() == wanted, lambda: f"{sold()}: {second.log[-4000:]}")
    assert second.stop() == 0


def bought(name: str, number: int, quantity: int) -> Order:
    row = order(f"{name}-{number}", items=[f"{name}-{number}"])
    row.items[0].quantity = quantity
    return row


def send_changes(bootstrap: str, topic: str, changes: list[OrderChange]) -> None:
    producer = Producer({"bootstrap.servers": bootstrap})
    for each in changes:
        producer.produce(topic, key=each.after.order_id.encode(), value=each.SerializeToString())
    producer.flush()


def read_sold(bootstrap: str, topic: str) -> dict[str, int]:
    held = read_fenced(read_topic(bootstrap, topic))
    return {key: OrderItem.FromString(state.payload).unit_price_cents for key, state in held.items()}


def committed(checkpoint: Path) -> int:
    """Returns the last batch that was committed; -1 without any."""
    return max((int(each.name) for each in checkpoint.glob("commits/[0-9]*")), default=-1)


def written(checkpoint: Path, batch: int) -> dict[Path, int]:
    """Returns the files of the state of all batches up to this one, and when each was written."""
    files = [(each, VERSION.fullmatch(each.name)) for each in checkpoint.glob("state/**/*")]
    return {each: each.stat().st_mtime_ns for each, name in files if name is not None and int(name[1]) <= batch + 1}
