"""A pipeline's file comes into the directory of a processor that runs."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from confluent_kafka import Producer

from stream_processor.steps.dead_letters import PIPELINES
from testkit.ports import free_ports
from testkit.stream_processor.changes import change, order
from testkit.stream_processor.model import by_item, by_order, model, wait_for_state
from testkit.stream_processor.process import Processor, wait_until
from testkit.topics import read_topic

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.long, pytest.mark.timeout(900)]


@pytest.fixture
def processor(tmp_path: Path, kafka: str) -> Iterator[Processor]:
    processor = Processor(tmp_path, kafka, free_ports(1)[0], [tmp_path / "pipelines"], checkpoint_interval="5s")
    yield processor
    processor.close()


def letters(kafka: str, prefix: str) -> list[bytes]:
    """Returns the names of the pipelines that could not use a record, of each dead letter."""
    return sorted(each.headers[PIPELINES] for each in read_topic(kafka, f"{prefix}orders.dead-letter"))


def test_it_is_started_beside_the_others_and_loses_no_dead_letter(
    kafka: str, prefix: str, processor: Processor, tmp_path: Path, write_pipeline: Callable[[str, Path, str], Path]
) -> None:
    directory = tmp_path / "pipelines"
    directory.mkdir()
    write_pipeline("orders-by-key", directory, prefix)
    producer = Producer({"bootstrap.servers": kafka})
    changes = [change(None, order(items=["item-1", "item-2"]), 1)]

    def write(*values: bytes) -> None:
        for value in values:
            producer.produce(f"{prefix}orders", key=b"any", value=value, partition=1)
        producer.flush()

    def wait_for_both() -> None:
        for name, keys in (("orders-by-key", by_order), ("orders-by-item", by_item)):
            wait_for_state(partial(read_topic, kafka, prefix + name), model(changes, keys), processor)

    write(b"\xff", changes[0].SerializeToString())
    processor.start_ready()
    wait_until(lambda: letters(kafka, prefix) == [b"orders-by-key"], lambda: processor.log)

    (directory / "wrong.yaml").write_text("name: wrong")
    wait_until(lambda: "stream_processor_refused_files 1.0" in processor.get("/metrics")[1], lambda: processor.log)
    write_pipeline("orders-by-item", directory, prefix)
    wait_for_both()
    both = [b"orders-by-item", b"orders-by-key"]
    wait_until(lambda: letters(kafka, prefix) == both, lambda: processor.log)

    assert processor.get("/readyz")[0] == 200
    assert processor.log.count('"query": "orders-by-key"') == 1

    processor.kill()
    (directory / "wrong.yaml").unlink()
    changes.append(change(order(items=["item-1", "item-2"]), order(items=["item-2"], second=3), 2))
    write(b"\xfe", changes[1].SerializeToString())
    processor.start_ready()
    wait_for_both()
    # A crash writes some again, and loses none.
    wait_until(lambda: all(letters(kafka, prefix).count(name) >= 2 for name in both), lambda: processor.log)

    assert processor.stop() == 0
