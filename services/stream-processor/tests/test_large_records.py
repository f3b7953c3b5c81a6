"""Rows and keys of any size through the real program: records too large for a topic are set aside; the flow goes on."""

from collections.abc import Callable
from functools import partial
from random import Random
from string import ascii_letters

import pytest
from confluent_kafka import Producer

from stream_processor.steps.dead_letters import REASON
from testkit.stream_processor.changes import change, order
from testkit.stream_processor.model import by_order, model, wait_for_state
from testkit.stream_processor.process import Processor, wait_until
from testkit.topics import read_topic

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.long, pytest.mark.timeout(900)]


def test_a_large_row_with_a_large_key_ends_nothing(
    kafka: str, prefix: str, start_processor: Callable[..., Processor]
) -> None:
    source, letters = f"{prefix}orders", f"{prefix}orders.dead-letter"
    processor = start_processor(prefix, checkpoint_interval="5s")
    processor.start()
    processor.wait_ready()
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
