"""Names of topics that Kafka takes, and some that it does not."""

import pytest

from statecast_service.topic_names import is_topic_name


@pytest.mark.parametrize("name", ["a", "...", "..a", ".a", "A_b-c.d", "x" * 249])
def test_what_kafka_takes_is_the_name_of_a_topic(name: str) -> None:
    assert is_topic_name(name)


@pytest.mark.parametrize("name", ["", ".", "..", "a b", "a/b", "é", "a\n", "x" * 250])
def test_what_kafka_does_not_take_is_no_name_of_a_topic(name: str) -> None:
    assert not is_topic_name(name)
