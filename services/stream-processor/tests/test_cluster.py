"""The same program on a standalone Spark cluster: a lost executor costs its own queries a start, and nothing else."""

import random
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from threading import Thread
from uuid import uuid4

import pytest
import yaml
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]  # not in its __all__

from statecast.orders.v1.order_pb2 import Order, OrderChange
from testkit import waiting
from testkit.ports import free_ports
from testkit.repository_files import DOMAINS
from testkit.stream_processor.changes import change, order
from testkit.stream_processor.cluster import Cluster
from testkit.stream_processor.model import by_customer, by_order, model, read_orders, wait_for_state
from testkit.stream_processor.pipeline_files import write_prefixed
from testkit.stream_processor.process import Processor, ProcessorOf, wait_until
from testkit.topics import read_topic

CHANGES = 10_000
CORES = 5
"""The task slots of each worker: two workers have enough, one has not."""
CORES_OF_ONE = 4
"""The task slots that one of the pipelines takes."""
GIVEN_UP_S = 15.0
"""After so long the queries of an executor that hangs go on at another one; Spark's own time-out is two minutes."""
KEYS = {"orders-by-key": by_order, "orders-by-customer": by_customer}

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.long, pytest.mark.timeout(1200)]


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    cluster = Cluster(tmp_path, free_ports(1)[0])
    yield cluster
    cluster.close()


@pytest.fixture
def run_on_cluster(
    tmp_path: Path, kafka: str, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> Iterator[ProcessorOf]:
    """Makes a processor of files that has its tasks on the cluster: `run_on_cluster(files, "5s")`."""
    for name, value in cluster.client_environment().items():
        monkeypatch.setenv(name, value)
    with ExitStack() as ends:

        def make(files: Iterable[Path], checkpoint_interval: str) -> Processor:
            own = {"checkpoint_interval": checkpoint_interval, "master": cluster.master}
            return ends.enter_context(Processor(tmp_path, kafka, free_ports(1)[0], files, **own))

        yield make


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
    content = yaml.safe_load(next(DOMAINS.rglob(f"{name}.yaml")).read_text())
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
    kafka: str, tmp_path: Path, prefix: str, cluster: Cluster, run_on_cluster: ProcessorOf
) -> None:
    processor = run_on_cluster([written(name, tmp_path, prefix) for name in KEYS], "5s")
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
    wait_until(lambda: "a query failed" in processor.log, lambda: processor.log)
    assert processor.get("/readyz")[0] == 200
    cluster.start_worker("worker-3", CORES)
    flow.join()

    for name, keys in KEYS.items():
        wait_for_state(partial(read_topic, kafka, prefix + name), model(changes, keys), processor)
    assert processor.stop() == 0


def test_an_executor_that_hangs_is_given_up_and_costs_its_own_queries_alone(
    kafka: str,
    tmp_path: Path,
    prefix: str,
    cluster: Cluster,
    run_on_cluster: ProcessorOf,
    record_testsuite_property: Callable[[str, object], None],
) -> None:
    directory, [well, hanging] = tmp_path / "pipelines", KEYS
    directory.mkdir()
    written(well, directory, prefix)
    # Tasks may move at the end of a batch, so none ends here: each pipeline has a worker of its own.
    processor = run_on_cluster([directory], "1h")
    cluster.start_master()
    cluster.start_worker("worker-1", CORES_OF_ONE)
    processor.start_ready()
    cluster.start_worker("worker-2", CORES_OF_ONE)
    written(hanging, directory, prefix)
    sent = list[OrderChange]()

    def write(number: int) -> None:
        sent.append(change(None, order(f"order-{number}"), number))
        send(sent[-1:], kafka, f"{prefix}orders")

    def is_written(name: str) -> bool:
        return read_orders(read_topic(kafka, prefix + name)) == model(sent, KEYS[name])

    write(1)
    for name in KEYS:
        wait_until(partial(is_written, name), processor.log_tail)
    cluster.start_worker("worker-3", CORES_OF_ONE)
    wait_until(lambda: bool(cluster.executors("worker-3")), "the worker to spare has no executor")
    for process in cluster.executors("worker-2"):
        process.suspend()
    hung = time.monotonic()
    write(2)
    wait_until(partial(is_written, well), processor.log_tail)
    waiting.wait_until(partial(is_written, hanging), processor.log_tail, GIVEN_UP_S)
    record_testsuite_property("given_up_s", round(time.monotonic() - hung, 1))
    write(3)
    for name in KEYS:
        wait_until(partial(is_written, name), processor.log_tail)

    assert {name: starts(processor, name) for name in KEYS} == {well: 1, hanging: 2}


def starts(processor: Processor, name: str) -> int:
    """Returns how often the query has been started."""
    lines = processor.log.splitlines()
    return sum(f'"query": "{name}"' in line and '"event": "started"' in line for line in lines)


def has_checkpoint(directory: Path, name: str) -> bool:
    return (directory / "checkpoints" / name / "commits" / "0").exists()
