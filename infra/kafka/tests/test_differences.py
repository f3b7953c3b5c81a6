"""The comparison of topics as declared with topics as they are."""

from kafka_topics.differences import differences
from kafka_topics.topics_file import Topic


def test_equal_topics_have_none() -> None:
    existing = Topic("a", 4, {"cleanup.policy": "compact", "retention.ms": "7"})

    assert differences([Topic("a", 4, {"cleanup.policy": "compact"})], {"a": existing}) == []


def test_a_missing_topic_is_named() -> None:
    assert differences([Topic("a", 4)], {}) == ["a: does not exist; run kafka-topics again"]


def test_each_difference_is_one_line_that_says_what_to_do() -> None:
    declared = Topic("a", 4, {"cleanup.policy": "compact", "retention.mz": "7"})
    existing = Topic("a", 2, {"cleanup.policy": "delete"})

    partitions, policy, unknown = differences([declared], {"a": existing})

    assert partitions.startswith("a: has 2 partitions, the file says 4; correct the file, or create a new topic")
    assert policy.startswith("a: cleanup.policy is delete, the file says compact; ")
    assert policy.endswith("kafka-configs --alter --topic a --add-config cleanup.policy=compact")
    assert unknown == "a: retention.mz is not a setting of this Kafka; correct its name in the file"


def test_a_value_with_a_comma_is_quoted_in_the_advice() -> None:
    declared = Topic("a", 1, {"cleanup.policy": "compact,delete"})

    (line,) = differences([declared], {"a": Topic("a", 1, {"cleanup.policy": "delete"})})

    assert line.endswith("--add-config cleanup.policy=[compact,delete]")
