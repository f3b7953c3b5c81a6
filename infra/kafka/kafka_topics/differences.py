"""Compares topics as they are declared with topics as they are, and says what to do about each difference."""

from collections.abc import Mapping, Sequence

from kafka_topics.topics_file import Topic


def differences(declared: Sequence[Topic], actual: Mapping[str, Topic]) -> list[str]:
    """Returns one line for each difference, in the order of the declaration.

    `actual` is by topic name and holds all settings of each topic; settings that the declaration does not name are not
    compared.
    """
    lines: list[str] = []
    for topic in declared:
        existing = actual.get(topic.name)
        if existing is None:
            lines.append(f"{topic.name}: does not exist; run kafka-topics again")
        else:
            lines += [*_partition_differences(topic, existing), *_config_differences(topic, existing)]
    return lines


def _partition_differences(declared: Topic, existing: Topic) -> list[str]:
    if declared.partitions == existing.partitions:
        return []
    return [
        f"{declared.name}: has {existing.partitions} partitions, the file says {declared.partitions}; "
        "correct the file, or create a new topic and move its readers (keys would change partition)"
    ]


def _config_differences(declared: Topic, existing: Topic) -> list[str]:
    lines = []
    for name, wanted in declared.config.items():
        found = existing.config.get(name)
        if found is None:
            lines.append(f"{declared.name}: {name} is not a setting of this Kafka; correct its name in the file")
        elif found != wanted:
            lines.append(
                f"{declared.name}: {name} is {found}, the file says {wanted}; correct the file, or run "
                f"kafka-configs --alter --topic {declared.name} --add-config {name}={_quoted(wanted)}"
            )
    return lines


def _quoted(value: str) -> str:
    return f"[{value}]" if "," in value else value
