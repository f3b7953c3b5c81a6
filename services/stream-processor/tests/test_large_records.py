"""Rows and keys of any size through the real program: records too large for a topic are set aside; the flow goes on."""

from functools import partial
from random import Random
from string import ascii_letters

import pytest
from confluent_kafka import Producer

from statecast.orders.v1.order_pb2 import OrderChange
from stream_processor.steps.dead_letters import PIPELINES, REASON
from testkit.stream_processor.changes import change, order
from testkit.stream_processor.model import by_order, model, wait_for_state
from testkit.stream_processor.process import ProcessorOf, wait_until
from testkit.topics import configure_topic, read_topic

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.long, pytest.mark.timeout(900)]


def test_a_large_row_with_a_large_key_ends_nothing(kafka: str, prefix: str, start_processor: ProcessorOf) -> None:
    source, letters = f"{prefix}orders", f"{prefix}orders.dead-letter"
    processor = start_processor(prefix, checkpoint_interval="5s")
    processor.start_ready()
    # Letters of chance, because topics count compressed bytes.
    large = order("".join(Random(1).choices(ascii_letters, k=600_000)))
    large.tracking_number = "x" * 100_000
    small = [change(None, order("a"), 1), change(None, order("b"), 3)]
    producer = Producer({"bootstrap.servers": kafka, "message.max.bytes": 2_000_000})
    for each, key in ((small[0], b"a"), (change(None, large, 2), b"k" * 300_000), (small[1], b"b")):
        producer.produce(source, each.SerializeToString(), key, 0)
    producer.flush()

    wait_for_state(partial(read_topic, kafka, f"{prefix}orders-by-key"), model(small, by_order), processor)
    wait_until(lambda: len(read_topic(kafka, letters)) == 1, lambda: processor.log)

    [letter] = read_topic(kafka, letters)
    assert letter.headers[REASON] == b"after.order_id has more than 1,024 characters, a key takes no more"
    assert letter.value == change(None, large, 2).SerializeToString()
    assert processor.stop() == 0


def test_a_sink_that_takes_smaller_records_meanwhile_ends_no_pipeline(
    kafka: str, prefix: str, start_processor: ProcessorOf
) -> None:
    processor = start_processor(prefix, checkpoint_interval="5s")
    processor.start_ready()
    producer = Producer({"bootstrap.servers": kafka})

    def send(number: int, order_id: str, characters: int = 1) -> OrderChange:
        row = order(order_id)
        row.tracking_number = "".join(Random(number).choices(ascii_letters, k=characters))
        sent = change(None, row, number)
        producer.produce(f"{prefix}orders", sent.SerializeToString(), b"any", 0)
        producer.flush()
        return sent

    first = send(1, "a")
    wait_for_state(partial(read_topic, kafka, f"{prefix}orders-by-key"), model([first], by_order), processor)
    configure_topic(kafka, f"{prefix}orders-by-key", "max.message.bytes", "40000")
    send(2, "large", 60_000)
    last = send(3, "b")

    wait_for_state(partial(read_topic, kafka, f"{prefix}orders-by-key"), model([first, last], by_order), processor)
    letters = partial(read_topic, kafka, f"{prefix}orders.dead-letter")
    wait_until(letters, lambda: processor.log)
    assert {letter.headers[PIPELINES] for letter in letters()} == {b"orders-by-key"}
    assert all(letter.headers[REASON].endswith(b"takes 23616 (max.message.bytes)") for letter in letters())
    assert processor.stop() == 0
