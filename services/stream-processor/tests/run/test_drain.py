"""Stopping in the middle of a flow: written records are checkpointed, so that none is written twice."""

from collections import Counter
from threading import Event, Thread

import pytest
from confluent_kafka import Producer

from statecast.state.v1.state_pb2 import StateRecord
from testkit.stream_processor.changes import change, order
from testkit.stream_processor.pipeline_files import latest_orders
from testkit.stream_processor.process import Processor, ProcessorOf, wait_until
from testkit.topics import read_topic

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.long, pytest.mark.timeout(600)]

ROWS = 40


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
def processor(processor_of: ProcessorOf, prefix: str) -> Processor:
    return processor_of(latest_orders(prefix, checkpoint="60s"), drain_s="50")


def test_after_a_stop_and_a_start_no_record_is_written_twice(kafka: str, prefix: str, processor: Processor) -> None:
    flow = Flow(kafka, f"{prefix}orders")
    thread = Thread(target=flow.run)
    processor.start_ready()
    thread.start()
    try:
        wait_until(lambda: len(written(kafka, prefix)) > ROWS, lambda: processor.log)
        assert processor.stop() == 0
        before = len(written(kafka, prefix))
        processor.start_ready()
        wait_until(lambda: len(written(kafka, prefix)) > before, lambda: processor.log)
    finally:
        flow.end()
        thread.join()
    wait_until(lambda: len(written(kafka, prefix)) >= flow.sent, lambda: processor.log)

    assert '"event": "drained"' in processor.log
    assert Counter(written(kafka, prefix)).most_common(1)[0][1] == 1
    assert sorted(written(kafka, prefix)) == list(range(1, flow.sent + 1))


def written(bootstrap: str, prefix: str) -> list[int]:
    """Returns the sequences of all records on the keyed topic."""
    records = read_topic(bootstrap, f"{prefix}orders-by-key")
    return [StateRecord.FromString(each.value or b"").sequence for each in records]


def test_partitions_without_records_end_their_batch_too(kafka: str, prefix: str, processor: Processor) -> None:
    processor.start_ready()

    assert processor.stop() == 0
    assert '"event": "drained"' in processor.log
