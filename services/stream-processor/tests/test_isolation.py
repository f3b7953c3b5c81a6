"""A pipeline that fails, is refused, loses its topic, is changed, comes or goes: the others notice nothing."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from threading import Event, Thread

import pytest
import yaml
from confluent_kafka import Producer

from statecast.orders.v1.order_pb2 import OrderChange
from statecast.state.v1.state_pb2 import StateRecord
from testkit.ports import free_ports
from testkit.secured_broker import secured_broker
from testkit.stream_processor.changes import change, order
from testkit.stream_processor.model import by_customer, by_item, by_order, model, wait_for_state
from testkit.stream_processor.process import Processor, wait_until
from testkit.topics import create_topic, delete_topic, read_topic

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.long, pytest.mark.timeout(900)]

SHIPPED = {"orders-by-key": by_order, "orders-by-customer": by_customer, "orders-by-item": by_item}
WELL, FAILING, BEREFT = SHIPPED
ADDED, REMOVED = "added", "removed"
KEYS = {**SHIPPED, ADDED: by_customer}
MAX_FAILURES = 5
PAUSE_S = 0.01
"""Between two orders of a steady load."""
USER = "stream-processor"


class Scene:
    """The orders' pipelines in a directory that a process follows, and changes that it reads."""

    def __init__(self, bootstrap: str, prefix: str, directory: Path, processor: Processor) -> None:
        self.bootstrap, self.prefix, self.directory, self.processor = bootstrap, prefix, directory, processor
        self._producer = Producer({"bootstrap.servers": bootstrap})
        self._changes: list[OrderChange] = []

    def write_order(self) -> None:
        number = len(self._changes) + 1
        self._changes.append(change(None, order(f"order-{number}"), number))
        self._producer.produce(f"{self.prefix}orders", self._changes[-1].SerializeToString(), b"key", number % 4)
        self._producer.flush()

    @contextmanager
    def load(self) -> Iterator[None]:
        """Writes orders, one after the other, as long as the block runs."""
        end = Event()

        def write() -> None:
            while not end.wait(PAUSE_S):
                self.write_order()

        thread = Thread(target=write)
        thread.start()
        try:
            yield
        finally:
            end.set()
            thread.join()

    @property
    def orders(self) -> int:
        """How many orders have been written."""
        return len(self._changes)

    def wait_for_orders(self, *names: str) -> None:
        for name in names:
            read = partial(read_topic, self.bootstrap, self.prefix + name)
            wait_for_state(read, model(self._changes, KEYS[name]), self.processor)

    def wait_for_note(self, text: str) -> None:
        """Waits until /readyz says it of a pipeline, and is 200 for the sake of the others."""
        wait_until(lambda: text in self.processor.get("/readyz")[1], self.processor.log_tail)
        assert self.processor.get("/readyz")[0] == 200

    def starts(self, name: str) -> int:
        """Returns how often the query has been started."""
        lines = self.processor.log.splitlines()
        return sum(f'"query": "{name}"' in line and '"event": "started"' in line for line in lines)

    @property
    def checkpoint(self) -> Path:
        """The checkpoint of the pipeline that fails."""
        return self.directory.parent / "checkpoints" / FAILING

    def take_checkpoint_away(self) -> Path:
        """Puts a file in its place, so that nothing can be written there; returns where it is."""
        kept = self.checkpoint.with_name("kept")
        self.checkpoint.rename(kept)
        self.checkpoint.touch()
        return kept

    def put_checkpoint_back(self, kept: Path) -> None:
        self.checkpoint.unlink()
        kept.rename(self.checkpoint)


@pytest.fixture
def scene(tmp_path: Path, kafka: str, prefix: str, write_pipeline: Callable[[str, Path, str], Path]) -> Iterator[Scene]:
    directory = tmp_path / "pipelines"
    directory.mkdir()
    for name in SHIPPED:
        write_pipeline(name, directory, prefix)
    settings = {"checkpoint_interval": "5s", "max_failures": str(MAX_FAILURES)}
    processor = Processor(tmp_path, kafka, free_ports(1)[0], [directory], **settings)
    yield Scene(kafka, prefix, directory, processor)
    processor.close()


def test_what_becomes_of_one_pipeline_is_not_seen_by_the_readers_of_another(
    scene: Scene, write_pipeline: Callable[[str, Path, str], Path]
) -> None:
    processor = scene.processor
    (scene.directory / "wrong.yaml").write_text("name: wrong")
    note = scene.checkpoint.with_name(f"{BEREFT}.json")
    note.parent.mkdir()
    note.write_text("{")
    scene.write_order()
    processor.start_ready()
    scene.wait_for_orders(WELL, FAILING)
    scene.wait_for_note(f"{scene.directory}/wrong.yaml is refused: ")
    scene.wait_for_note(f"{note} is not JSON")
    note.unlink()
    scene.wait_for_orders(BEREFT)
    assert processor.metric("stream_processor_refused_files") == 1
    up = partial(processor.metric, "stream_processor_query_up")

    wait_until(scene.checkpoint.joinpath("commits", "0").exists, processor.log_tail)
    kept = scene.take_checkpoint_away()
    scene.wait_for_note(f"{FAILING} does not run: ")
    assert (up(query=FAILING), up(query=WELL)) == (0, 1)
    scene.put_checkpoint_back(kept)
    scene.write_order()
    scene.wait_for_orders(*SHIPPED)
    wait_until(lambda: FAILING not in processor.get("/readyz")[1], processor.log_tail)
    assert scene.starts(FAILING) > 1

    kept = scene.take_checkpoint_away()
    scene.wait_for_note(f"{FAILING} stands still: it failed {MAX_FAILURES} times in a row")
    assert processor.metric("stream_processor_query_failures_total", query=FAILING) == MAX_FAILURES
    delete_topic(scene.bootstrap, scene.prefix + BEREFT)
    scene.write_order()
    scene.wait_for_orders(WELL)
    scene.wait_for_note(f"{BEREFT} stands still: {scene.prefix}{BEREFT} was deleted")
    assert (up(query=FAILING), up(query=BEREFT), up(query=WELL)) == (0, 0, 1)
    assert scene.starts(WELL) == 1

    change_trigger(scene.directory / f"{WELL}.yaml")
    wait_until(lambda: scene.starts(WELL) == 2, processor.log_tail)
    scene.write_order()
    scene.wait_for_orders(WELL)

    (scene.directory / f"{FAILING}.yaml").unlink()
    wait_until(lambda: FAILING not in processor.get("/readyz")[1], processor.log_tail)
    assert f'query="{FAILING}"' not in processor.get("/metrics")[1]
    scene.put_checkpoint_back(kept)
    write_pipeline(FAILING, scene.directory, scene.prefix)
    scene.wait_for_orders(FAILING)

    (scene.directory / f"{WELL}.yaml").unlink()
    wait_until(lambda: f'query="{WELL}"' not in processor.get("/metrics")[1], processor.log_tail)
    written = len(read_topic(scene.bootstrap, scene.prefix + WELL))
    scene.write_order()
    scene.wait_for_orders(FAILING)
    assert len(read_topic(scene.bootstrap, scene.prefix + WELL)) == written
    assert processor.stop() == 0


def test_readers_see_no_change_twice_and_miss_none_while_other_pipelines_fail_change_come_and_go(
    scene: Scene, write_pipeline: Callable[[str, Path, str], Path]
) -> None:
    processor = scene.processor
    for name in (ADDED, REMOVED):
        create_topic(scene.bootstrap, scene.prefix + name)
    write_copy(write_pipeline, REMOVED, scene)
    processor.start_ready()
    with scene.load():
        wait_until(scene.checkpoint.joinpath("commits", "0").exists, processor.log_tail)
        scene.take_checkpoint_away()
        change_trigger(scene.directory / f"{BEREFT}.yaml")
        (scene.directory / f"{REMOVED}.yaml").unlink()
        write_copy(write_pipeline, ADDED, scene)
        wait_until(lambda: scene.starts(BEREFT) == 2, processor.log_tail)
        wait_until(lambda: scene.starts(ADDED) == 1, processor.log_tail)
        wait_until(lambda: f'query="{REMOVED}"' not in processor.get("/metrics")[1], processor.log_tail)
        scene.wait_for_note(f"{FAILING} stands still: it failed {MAX_FAILURES} times in a row")
    scene.wait_for_orders(WELL, BEREFT, ADDED)

    # A real-time query writes a record for each change, and would write some again when it starts anew.
    records = read_topic(scene.bootstrap, scene.prefix + WELL)
    assert sorted(StateRecord.FromString(each.value or b"").sequence for each in records) == list(
        range(1, scene.orders + 1)
    )
    assert {name: scene.starts(name) for name in (WELL, BEREFT, ADDED, REMOVED)} == {
        WELL: 1,
        BEREFT: 2,
        ADDED: 1,
        REMOVED: 1,
    }
    failures = partial(processor.metric, "stream_processor_query_failures_total")
    assert (failures(), failures(query=FAILING)) == (MAX_FAILURES, MAX_FAILURES)
    up = partial(processor.metric, "stream_processor_query_up")
    assert [up(query=name) for name in (WELL, BEREFT, ADDED, FAILING)] == [1, 1, 1, 0]
    assert processor.stop() == 0


def test_a_pipeline_without_its_permission_waits_alone_and_goes_on_once_it_has_it(
    tmp_path: Path, write_pipeline: Callable[[str, Path, str], Path]
) -> None:
    with secured_broker(tmp_path / "broker") as broker:
        names = [WELL, FAILING]
        broker.set_password(USER, "secret")
        broker.allow(USER, ["Read"], "group", ["stream-processor"])
        for name in (*names, "orders", "orders.dead-letter"):
            create_topic(broker.bootstrap, f"x.{name}", 4)
            broker.allow(USER, ["Read", "Write", "DescribeConfigs"], "topic", [f"x.{name}"])
        files = [write_pipeline(name, tmp_path, "x.") for name in names]
        own = {name: str(value) for name, value in broker.with_password(USER).items() if name != "kafka_bootstrap"}
        bootstrap = str(broker.with_password(USER)["kafka_bootstrap"])
        with Processor(tmp_path, bootstrap, free_ports(1)[0], files, checkpoint_interval="5s", **own) as processor:
            scene = Scene(broker.bootstrap, "x.", tmp_path, processor)
            processor.start_ready()
            scene.write_order()
            scene.wait_for_orders(*names)
            with broker.without(USER, "Write", "topic", f"x.{FAILING}"):
                scene.write_order()
                scene.wait_for_note(f"do not allow Write on the topic x.{FAILING}")
                scene.wait_for_orders(WELL)
                failures = processor.metric("stream_processor_query_failures_total", query=FAILING)
            scene.wait_for_orders(*names)

            assert (failures, scene.starts(WELL)) == (1, 1)
            assert processor.stop() == 0


def write_copy(write_pipeline: Callable[[str, Path, str], Path], name: str, scene: Scene) -> None:
    """Writes a pipeline of this name that does the same as one of the orders', with a topic of its own."""
    content = yaml.safe_load(write_pipeline(FAILING, scene.directory.parent, scene.prefix).read_text())
    content |= {"name": name, "sink": {"topic": scene.prefix + name}}
    (scene.directory / f"{name}.yaml").write_text(yaml.safe_dump(content))


def change_trigger(file: Path) -> None:
    content = yaml.safe_load(file.read_text())
    file.write_text(yaml.safe_dump({**content, "trigger": {"mode": "realtime", "checkpoint": "6s"}}))
