"""Checks the topics and stores of a pipeline against the rows that its model expects."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from google.protobuf.message import Message

from drivers.pipeline_models import MODELS, NUL, Plain, canonical
from drivers.topic_readers import materialize
from testkit.topics import read_topic

Rows = Mapping[str, bytes]
"""The rows of a keyed topic or of a store, in `canonical` form, by the text of their keys."""

Expected = Mapping[str, Message | list[Message]]
"""The expected row of each key; in case of a list, any row of it."""


def expected_of(bootstrap: str, pipeline: str) -> Expected | Plain:
    """Returns the rows that the model expects from all published changes of the sources, repetitions included."""
    model = MODELS[pipeline]
    changes = [
        message.FromString(record.value or b"")
        for topic, message in model.sources.items()
        for record in read_topic(bootstrap, topic)
    ]
    expected: Expected | Plain = model.expected(changes)
    assert expected, f"{pipeline}: the workload never comes to what it is for"
    return expected


def assert_topic_holds(bootstrap: str, pipeline: str, expected: Expected | Plain, *, repeats: bool = False) -> None:
    """Asserts that the pipeline's topic holds exactly the expected rows, each group on one partition.

    With `repeats` a plain topic may hold a value more often than expected, as it does after the death of the processor.
    """
    if isinstance(expected, Counter):
        _assert_plain(bootstrap, pipeline, expected, repeats=repeats)
        return
    keyed_topic = materialize(read_topic(bootstrap, pipeline))
    torn = [group for group, partitions in keyed_topic.partitions.items() if len(partitions) > 1]
    assert torn == [], f"{pipeline}: a group stands on one partition"
    assert_rows(pipeline, keyed_topic.live, expected)


def _assert_plain(bootstrap: str, topic: str, expected: Plain, *, repeats: bool) -> None:
    values = Counter(_without_total(topic, record.value or b"") for record in read_topic(bootstrap, topic))
    assert values.keys() == expected.keys(), f"{topic}: a value is missing or wrong"
    assert values >= expected, f"{topic}: a value is missing"
    assert repeats or values == expected, f"{topic}: a value came twice"


def _without_total(topic: str, value: bytes) -> bytes:
    """Returns the value without its running total, which must be there."""
    if (running := MODELS[topic].running) is None:
        return value
    message, field = running
    parsed: Any = message.FromString(value)
    assert getattr(parsed, field) >= parsed.earned_points
    parsed.ClearField(field)
    return canonical(parsed)


def assert_rows(where: str, rows: Rows, expected: Expected) -> None:
    """Asserts that there is an expected row under each key, and nothing else."""
    missing, surplus = expected.keys() - rows.keys(), rows.keys() - expected.keys()
    wrong = {key for key in expected.keys() & rows.keys() if rows[key] not in _choices(expected[key])}
    differences = {"missing": missing, "surplus": surplus, "wrong": wrong}
    counts = {name: (len(keys), sorted(keys)[:3]) for name, keys in differences.items() if keys}
    assert counts == {}, f"{where}: {counts} of {len(expected)} rows"


def of_group(expected: Expected, group: str) -> Expected:
    """Returns the expected rows of one group."""
    return {key: row for key, row in expected.items() if key.split(NUL)[0] == group}


def groups_of(expected: Expected) -> list[str]:
    """Returns the groups that have rows."""
    return sorted({key.split(NUL)[0] for key in expected})


def first_of(expected: Expected) -> Message:
    """Returns any of the rows."""
    row = next(iter(expected.values()))
    return row[0] if isinstance(row, list) else row


def _choices(expected: Message | list[Message]) -> set[bytes]:
    """Returns the encoded rows of which any may stand under a key."""
    return {canonical(each) for each in (expected if isinstance(expected, list) else [expected])}
