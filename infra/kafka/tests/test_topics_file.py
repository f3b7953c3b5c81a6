"""The file that declares the topics, and its comparison with the topics as they are."""

from pathlib import Path

import pytest

from kafka_topics import TopicsFileError
from kafka_topics.topics_file import Topic, read_topics
from statecast_service.topics import differences

SHIPPED = Path(__file__).parents[1] / "topics.yaml"


def write(directory: Path, text: str) -> Path:
    path = directory / "topics.yaml"
    path.write_text(text)
    return path


def test_it_reads_topics_in_the_order_of_the_file(tmp_path: Path) -> None:
    path = write(tmp_path, "topics: [{name: b, partitions: 2}, {name: a, partitions: 1, config: {retention.ms: 5}}]")

    assert read_topics(path) == [Topic("b", 2), Topic("a", 1, {"retention.ms": "5"})]


def test_it_writes_true_and_false_as_kafka_does(tmp_path: Path) -> None:
    path = write(tmp_path, "topics: [{name: a, partitions: 1, config: {preallocate: true, unclean: no}}]")

    assert read_topics(path)[0].config == {"preallocate": "true", "unclean": "false"}


def test_the_shipped_file_declares_the_topics_of_the_main_job() -> None:
    partitions = {topic.name: topic.partitions for topic in read_topics(SHIPPED)}

    assert partitions["orders"] == partitions["orders-by-key"]
    assert {"orders", "orders.dead-letter", "orders-by-key", "orders-by-customer", "orders-by-item"} <= set(partitions)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("topics: [", "is not YAML"),
        ("- a", "must be a mapping with the key `topics`"),
        ("topics: []", "topics: must be a list of one topic or more"),
        ("topics: [{name: a, partitions: 1}]\nother: 1", "other: unknown key; known are topics"),
        ("topics: [7]", "topics[0]: must be a mapping"),
        ("topics: [{name: a, partition: 1}]", "topics[0].partition: unknown key; known are name, partitions, config"),
        ("topics: [{name: a}]", "topics[0].partitions: None must be a whole number from 1"),
        ("topics: [{name: a, partitions: 0}]", "topics[0].partitions: 0 must be a whole number from 1"),
        ("topics: [{name: a, partitions: four}]", "topics[0].partitions: 'four' must be a whole number from 1"),
        ("topics: [{name: a, partitions: true}]", "topics[0].partitions: True must be a whole number from 1"),
        ("topics: [{name: a b, partitions: 1}]", "topics[0].name: 'a b' must be 1 to 249"),
        ("topics: [{name: .., partitions: 1}]", "topics[0].name: '..' must be 1 to 249"),
        ("topics: [{name: a, partitions: 1}, {name: a, partitions: 1}]", "topics[1].name: a is declared twice"),
        ("topics: [{name: a, partitions: 1, partitions: 2}]", "the key 'partitions' is given twice"),
        ("topics: [{name: a, partitions: 1, config: [x]}]", "topics[0].config: must be a mapping"),
        ("topics: [{name: a, partitions: 1, config: {x: [1]}}]", "topics[0].config.x: [1] must be text"),
        (
            "topics: [{name: a, partitions: 1, config: {1: x}}]",
            "topics[0].config.1: the name of a setting must be text",
        ),
    ],
)
def test_what_it_does_not_understand_is_one_line_naming_the_file_and_the_key(
    tmp_path: Path, text: str, complaint: str
) -> None:
    path = write(tmp_path, text)

    with pytest.raises(TopicsFileError) as caught:
        read_topics(path)

    assert str(caught.value).startswith(f"{path}: ")
    assert complaint in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(TopicsFileError, match=r"absent\.yaml: cannot be read"):
        read_topics(tmp_path / "absent.yaml")


def test_equal_topics_have_none() -> None:
    existing = Topic("a", 4, {"cleanup.policy": "compact", "retention.ms": "7"})

    assert differences([Topic("a", 4, {"cleanup.policy": "compact"})], {"a": existing}) == []


def test_a_missing_topic_is_named() -> None:
    assert differences([Topic("a", 4)], {}) == ["a: does not exist; create it as the file says"]


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
