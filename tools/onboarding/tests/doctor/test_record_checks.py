"""Findings from the newest records of topics on a real Kafka."""

import time
from collections.abc import Callable, Sequence
from uuid import uuid4

import pytest
from confluent_kafka import Producer

from statecast_onboarding.doctor.kafka_checks import KafkaChecks
from statecast_onboarding.doctor.team_files import TeamFiles
from statecast_service.kafka import KafkaSettings
from testkit.topics import create_topic

ANY_TIME = {"cleanup.policy": "compact", "message.timestamp.after.max.ms": str(2**63 - 1)}
Write = Callable[[Producer], None]


@pytest.fixture
def name() -> str:
    return f"doctor-{uuid4().hex[:8]}"


def findings(kafka: str, name: str, write: Write, files: TeamFiles, **settings: str) -> list[str]:
    """Returns the findings of the checks in a topic of four partitions, once it was written."""
    create_topic(kafka, name, config=ANY_TIME)
    producer = Producer({"bootstrap.servers": kafka, "partitioner": "murmur2_random", **settings})
    write(producer)
    producer.flush()
    return [str(each) for each in KafkaChecks(KafkaSettings(kafka_bootstrap=kafka), files, ()).findings()]


def plain(name: str, partitioner: str = "murmur2") -> TeamFiles:
    store = {"name": name, "format": "plain", "partitioner": partitioner}
    return TeamFiles(topics={name: {"name": name}}, stores={name: store})


def table(name: str) -> TeamFiles:
    return TeamFiles(topics={name: {"name": name}}, sources=frozenset({name}), tables=frozenset({name}))


def keyed(name: str, keys: Sequence[bytes | None]) -> Write:
    def write(producer: Producer) -> None:
        for key in keys:
            producer.produce(name, key=key, value=b"{}")

    return write


@pytest.mark.kafka
@pytest.mark.parametrize(
    ("written", "declared", "finding"),
    [
        ("fnv1a_random", "murmur2", "set partitioner: fnv1a in its store"),
        ("fnv1a_random", "fnv1a", "1000 of its keys are where fnv1a puts them"),
        ("random", "murmur2", "no partitioner that is known fits all"),
    ],
)
def test_the_partitioner_that_fits_a_thousand_keys_is_told(
    kafka: str, name: str, written: str, declared: str, finding: str
) -> None:
    write = keyed(name, [f"key-{number}".encode() for number in range(4000)])

    [line] = [
        line for line in findings(kafka, name, write, plain(name, declared), partitioner=written) if "keys " in line
    ]

    assert finding in line


@pytest.mark.kafka
@pytest.mark.parametrize("files", [plain, table])
def test_a_key_on_two_partitions_is_found(kafka: str, name: str, files: Callable[[str], TeamFiles]) -> None:
    def write(producer: Producer) -> None:
        for partition in (1, 3):
            producer.produce(name, key=b"twice", value=b"{}", partition=partition)

    lines = findings(kafka, name, write, files(name))

    assert any("1 of 1 keys are on several partitions, as b'twice' on 1, 3" in line for line in lines), lines


@pytest.mark.kafka
def test_forms_of_keys_are_named(kafka: str, name: str) -> None:
    lines = findings(kafka, name, keyed(name, [(7).to_bytes(8, "big"), b'"quoted"']), table(name))

    assert any(line.startswith("FAIL") and "looks like a number of 8 bytes, here 7" in line for line in lines), lines
    assert any(line.startswith("WARN") and "its keys are JSON texts" in line for line in lines), lines


@pytest.mark.kafka
@pytest.mark.parametrize(
    ("factor", "ahead_s", "finding"),
    [
        (1_000_000, 0, "which counts microseconds or nanoseconds"),
        (1_000, 86_400, "seconds ahead: set the clock of its producer right"),
    ],
)
def test_times_in_other_units_or_ahead_are_told(kafka: str, name: str, factor: int, ahead_s: int, finding: str) -> None:
    moment = int((time.time() + ahead_s) * factor)

    lines = findings(kafka, name, lambda producer: producer.produce(name, b"{}", b"key", timestamp=moment), table(name))

    assert any(finding in line for line in lines), lines


@pytest.mark.kafka
def test_a_transaction_that_stays_open_is_told(kafka: str, name: str) -> None:
    create_topic(kafka, name, config=ANY_TIME)
    hanging = Producer({"bootstrap.servers": kafka, "transactional.id": name})
    hanging.init_transactions()
    hanging.begin_transaction()
    hanging.produce(name, key=b"key", value=b"{}", partition=2)
    hanging.flush()
    checks = KafkaChecks(KafkaSettings(kafka_bootstrap=kafka), plain(name), ())
    during = [str(each) for each in checks.findings()]
    hanging.abort_transaction()
    after = [str(each) for each in checks.findings()]

    assert any("an open transaction holds back what comes after offset 0 of partition 2" in line for line in during)
    assert not any("open transaction" in line for line in after)
