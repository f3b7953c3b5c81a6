"""Checks the newest records of a topic: partitioners, forms of keys, clocks and transactions that stay open."""

import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from confluent_kafka import TIMESTAMP_NOT_AVAILABLE, Consumer, KafkaError, KafkaException, TopicPartition

from statecast.partitioning import count_matches, group_of
from statecast_onboarding.doctor.finding import Finding, fail, ok, warn
from statecast_service.key_forms import form_of_bytes, form_of_text

TIMEOUT_S = 10.0
SAMPLE = 1_000
"""How many records of a topic are looked at, those at the ends of its partitions."""
MIN_OF_PARTITION = 20
AHEAD_MS = 3_600_000
"""How far ahead a record's time may be: Kafka's own limit by default since version 4."""
MICROSECONDS = 100_000_000_000_000
"""In milliseconds, a time in the year 5138: larger times were counted in another unit."""


@dataclass(frozen=True)
class Sampled:
    """A record as far as the checks need it; `time_ms` is None for a record without a time."""

    partition: int
    key: bytes | None
    time_ms: int | None


def newest_records(consumer: Consumer, topic: str, partitions: int) -> list[Sampled]:
    """Reads about SAMPLE records at the ends of the partitions. Raises KafkaException."""
    count = max(SAMPLE // max(partitions, 1), MIN_OF_PARTITION)
    return [each for number in range(partitions) for each in _newest(consumer, topic, number, count)]


def _newest(consumer: Consumer, topic: str, number: int, count: int) -> Iterator[Sampled]:
    place = TopicPartition(topic, number)
    first, end = consumer.get_watermark_offsets(place, timeout=TIMEOUT_S)
    consumer.assign([TopicPartition(topic, number, max(first, end - count))])
    while first < end and (message := consumer.poll(TIMEOUT_S)) is not None:
        if (error := message.error()) is None:
            key, (kind, time_ms) = message.key(), message.timestamp()
            known = None if kind == TIMESTAMP_NOT_AVAILABLE else time_ms
            yield Sampled(number, key.encode() if isinstance(key, str) else key, known)
        elif error.code() == KafkaError._PARTITION_EOF:
            return
        elif error.code() != KafkaError.GROUP_AUTHORIZATION_FAILED:  # the group is never joined
            raise KafkaException(error)


def check_rows(
    topic: str, records: Sequence[Sampled], store: Mapping[str, Any] | None, partitions: int
) -> Iterator[Finding]:
    """Looks at the keys of a topic of rows: a topic of a store, or of a table that a pipeline reads."""
    plain = store is None or store.get("format") == "plain"
    yield from _forms(f"topic {topic}", records, plain)
    yield from _several_partitions(f"topic {topic}", records)
    if store is not None:
        yield from _partitioner(f"topic {topic}", records, store.get("partitioner", "murmur2"), plain, partitions)


def _forms(subject: str, records: Sequence[Sampled], plain: bool) -> Iterator[Finding]:
    """Names the first key that is no text, and the forms of texts. The keys of a keyed topic have NULs within them."""
    keys = [record.key or b"" for record in records]
    for key in keys:
        if not key or _text(key) is None or (plain and b"\0" in key):
            yield fail(subject, form_of_bytes(key))
            break
    forms = {form_of_text(key) for key in keys} if plain else set()
    for form in sorted(filter(None, forms)):
        yield warn(subject, f"its keys are {form}")


def _several_partitions(subject: str, records: Iterable[Sampled]) -> Iterator[Finding]:
    places: dict[bytes, set[int]] = defaultdict(set)
    for record in records:
        if record.key:
            places[record.key].add(record.partition)
    several = sorted(key for key, partitions in places.items() if len(partitions) > 1)
    if several:
        numbers = ", ".join(map(str, sorted(places[several[0]])))
        text = f"{len(several)} of {len(places)} keys are on several partitions, as {several[0][:40]!r} on {numbers}"
        todo = "write with one partitioner and one number of partitions, and write its rows into a new topic"
        yield fail(subject, f"{text}: nobody knows which is the newest; {todo}")


def _partitioner(
    subject: str, records: Iterable[Sampled], declared: str, plain: bool, partitions: int
) -> Iterator[Finding]:
    keys = {(record.key if plain else group_of(record.key), record.partition) for record in records if record.key}
    places = [(text, number) for key, number in keys if (text := _text(key)) is not None]
    if not places:
        return
    counts = count_matches(places, partitions)
    if counts[declared] == len(places):
        yield ok(subject, f"{len(places)} of its keys are where {declared} puts them")
        return
    best = max(counts, key=lambda name: counts[name])
    fits = f"{counts[declared]} of {len(places)} keys are where {declared} puts them, so lookups miss the others"
    if counts[best] == len(places):
        yield fail(subject, f"{fits}: set partitioner: {best} in its store")
    else:
        yield fail(subject, f"{fits}, and no partitioner that is known fits all, at best {best} {counts[best]} of them")


def _text(key: bytes) -> str | None:
    try:
        return key.decode()
    except UnicodeDecodeError:
        return None


def check_clock(topic: str, records: Iterable[Sampled]) -> Iterator[Finding]:
    """Finds times in other units than milliseconds, and times ahead."""
    latest = max((record.time_ms for record in records if record.time_ms is not None), default=0)
    if latest > MICROSECONDS:
        text = f"has a record of the time {latest}, which counts microseconds or nanoseconds: Kafka's are milliseconds"
        yield fail(f"topic {topic}", f"{text}; correct its producer")
    elif latest > time.time() * 1_000 + AHEAD_MS:
        text = f"has a record {round(latest / 1_000 - time.time())} seconds ahead: set the clock of its producer right"
        yield warn(f"topic {topic}", text)


def check_transactions(committed: Consumer, uncommitted: Consumer, topic: str, partitions: int) -> Iterator[Finding]:
    """Finds a transaction that holds back a partition's end, and still does after a moment. Raises KafkaException."""
    held = dict(_held_back(committed, uncommitted, topic, range(partitions)))
    if not held:
        return
    time.sleep(1)
    for number, place in _held_back(committed, uncommitted, topic, held):
        if held[number] == place:
            text = f"an open transaction holds back what comes after offset {place} of partition {number}"
            yield warn(f"topic {topic}", f"{text}: end its producer, or abort it by kafka-transactions.sh")


def _held_back(
    committed: Consumer, uncommitted: Consumer, topic: str, partitions: Iterable[int]
) -> Iterator[tuple[int, int]]:
    for number in partitions:
        place = TopicPartition(topic, number)
        _, stable = committed.get_watermark_offsets(place, timeout=TIMEOUT_S)
        _, end = uncommitted.get_watermark_offsets(place, timeout=TIMEOUT_S)
        if stable < end:
            yield number, stable
