"""Stopping in the middle of a flow: written records are checkpointed, so that none is written twice."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from threading import Event, Thread

import pytest
from confluent_kafka import Producer

from statecast.state.v1.state_pb2 import StateRecord
from testkit.ports import free_ports
from testkit.stream_processor.changes import change, order
from testkit.stream_processor.process import Processor, wait_until
from testkit.topics import read_topic

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.long, pytest.mark.timeout(600)]

ROWS = 40
PIPELINE = """
name: latest
source: {{topic: {prefix}orders, message: statecast.orders.v1.OrderChange, format: protobuf}}
group_by: order_id
keep: latest
sink: {{topic: {prefix}orders-by-key}}
trigger: {{mode: realtime, checkpoint: 60s}}
"""


class Flow:
    """Sends changes of rows to all partitions, one after the other, until `end`."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self._producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 0})
        self._topic = topic
        self._ended = Event()
        self.sent = 0

    def run(self) -> None:
        while not self._ended.wait(0.005):
            self.sent += 1
            each = change(None, order(f"order-{self.sent % ROWS}"), self.sent)
            self._producer.produce(self._topic, value=each.SerializeToString(), partition=self.sent % 4)
        self._producer.flush()

    def end(self) -> None:
        self._ended.set()


@pytest.fixture
def processor(tmp_path: Path, kafka: str, prefix: str) -> Iterator[Processor]:
    file = tmp_path / "latest.yaml"
    file.write_text(PIPELINE.format(prefix=prefix))
    processor = Processor(tmp_path, kafka, free_ports(1)[0], [file], drain_s="50")
    yield processor
    processor.close()


def test_after_a_stop_and_a_start_no_record_is_written_twice(kafka: str, prefix: str, processor: Processor) -> None:
    flow = Flow(kafka, f"{prefix}orders")
    thread = Thread(target=flow.run)
    processor.start()
    processor.wait_ready()
    thread.start()
    try:
        wait_until(lambda: len(written(kafka, prefix)) > ROWS, lambda: processor.log)
        assert processor.stop() == 0
        before = len(written(kafka, prefix))
        processor.start()
        processor.wait_ready()
        wait_until(lambda: len(written(kafka, prefix)) > before, lambda: processor.log)
    finally:
        flow.end()
        thread.join()
    wait_until(lambda: len(written(kafka, prefix)) >= flow.sent, lambda: processor.log)

    assert '"event": "drained"' in processor.log
    assert Counter(written(kafka, prefix)).most_common(1)[0][1] == 1
    assert sorted(written(kafka, prefix)) == list(range(1, flow.sent + 1))


def written(bootstrap: str, prefix: str) -> list[int]:
    """The sequences of all records on the keyed topic."""
    records = read_topic(bootstrap, f"{prefix}orders-by-key")
    return [StateRecord.FromString(each.value or b"").sequence for each in records]


def test_partitions_without_records_end_their_batch_too(kafka: str, prefix: str, processor: Processor) -> None:
    processor.start()
    processor.wait_ready()

    assert processor.stop() == 0
    assert '"event": "drained"' in processor.log
