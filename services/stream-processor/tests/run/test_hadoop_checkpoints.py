"""The real program with its checkpoints at a URI."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml
from confluent_kafka import Producer

from testkit.ports import free_ports
from testkit.stream_processor.changes import change, order
from testkit.stream_processor.model import by_order, model, wait_for_state
from testkit.stream_processor.pipeline_files import latest_orders
from testkit.stream_processor.process import Processor, ProcessorOf, wait_until
from testkit.topics import read_topic

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.long, pytest.mark.timeout(900)]


@pytest.fixture
def start(tmp_path: Path, kafka: str, prefix: str) -> Iterator[ProcessorOf]:
    """Starts a process with its own log; all processes share one place for their checkpoints."""
    processors: list[Processor] = []

    def start(name: str, **more: Any) -> Processor:
        directory = tmp_path / name
        directory.mkdir()
        file = directory / "latest.yaml"
        file.write_text(yaml.safe_dump(latest_orders(prefix, **more)))
        place = (tmp_path / "checkpoints").as_uri()
        processors.append(Processor(directory, kafka, free_ports(1)[0], [file], checkpoints=place, drain_s="0"))
        processors[-1].start()
        return processors[-1]

    yield start
    for each in processors:
        each.close()


def test_a_restart_goes_on_and_nobody_else_does(kafka: str, prefix: str, start: ProcessorOf, tmp_path: Path) -> None:
    changes = [change(None, order(f"order-{number}"), number) for number in range(1, 5)]
    producer = Producer({"bootstrap.servers": kafka})
    read_state = partial(read_topic, kafka, f"{prefix}orders-by-key")

    first = start("first")
    first.wait_ready()
    second = start("second")
    for each in changes[:2]:
        producer.produce(f"{prefix}orders", value=each.SerializeToString(), partition=0)
    producer.flush()
    wait_for_state(read_state, model(changes[:2], by_order), first)
    before = commits(tmp_path)
    # The next batch may have begun before the last record was written; the one after it has not.
    wait_until(lambda: commits(tmp_path) >= before + 2, lambda: first.log)

    assert second.wait_end() == 2
    assert "STREAM_PROCESSOR_CHECKPOINTS: another process, " in second.log
    assert f"works on {(tmp_path / 'checkpoints').as_uri()}" in second.log

    first.kill()
    changed = start("changed", where="total_cents > 0")

    assert changed.wait_end() == 2
    assert "where: changed since the checkpoint file:///" in changed.log
    assert "Traceback" not in second.log + changed.log

    again = start("again")
    again.wait_ready()
    for each in changes[2:]:
        producer.produce(f"{prefix}orders", value=each.SerializeToString(), partition=1)
    producer.flush()
    wait_for_state(read_state, model(changes, by_order), again)

    assert len(read_state()) == len(changes)
    assert again.stop() == 0


def commits(directory: Path) -> int:
    """Returns how many batches are committed."""
    return len([*(directory / "checkpoints" / "latest" / "commits").glob("[0-9]*")])
