"""Dead letters as a real broker gives them."""

from collections.abc import Callable

import pytest
from confluent_kafka import Producer

from stream_processor.letters.letter_reader import LetterReader
from stream_processor.operation.topic_limits import TopicLimits
from stream_processor.operation.topics import Topics
from stream_processor.testing.process import wait_until

pytestmark = pytest.mark.kafka


def test_all_partitions_are_read_to_their_ends(kafka: str, create_topic: Callable[..., str]) -> None:
    topic = create_topic("letters", partitions=3)
    producer = Producer({"bootstrap.servers": kafka})
    for value, partition in ((b"a", 0), (b"b", 0), (None, 2)):
        producer.produce(topic, value, b"key", partition, headers=[("statecast-reason", b"why")])
    producer.flush()

    letters = list(LetterReader(kafka).read(topic, {0: 1}))

    assert sorted((each.partition, each.offset, each.value) for each in letters) == [(0, 1, b"b"), (2, 0, None)]
    assert {(each.key, each.reason, each.origin) for each in letters} == {(b"key", "why", None)}


def test_an_empty_topic_has_no_letters(kafka: str, create_topic: Callable[..., str]) -> None:
    assert list(LetterReader(kafka).read(create_topic("letters", partitions=1), {})) == []


def test_a_topic_says_how_large_a_record_it_takes(kafka: str, create_topic: Callable[..., str]) -> None:
    plain, large = create_topic("plain"), create_topic("large", max_message_bytes="6000000")
    wait_until(lambda: Topics(kafka).missing([plain, large]) is None, lambda: "the topics do not appear")

    assert TopicLimits(kafka).of([plain, large]) == {plain: 1_048_588, large: 6_000_000}
