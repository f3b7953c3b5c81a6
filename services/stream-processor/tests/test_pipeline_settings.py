"""Settings of a pipeline's file about its beginning and its writing, in the real program."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import yaml
from confluent_kafka import Producer

from statecast.partitioning import partition_of
from statecast.sales.v1.customer_rewards_pb2 import CustomerRewards
from statecast.sales.v1.home_delivery_pb2 import HomeDelivery
from statecast.state.v1.state_pb2 import StateRecord
from stream_processor.run.queries import MEGABYTE
from stream_processor.run.topics import Topics
from stream_processor.settings import Settings
from testkit.repository_files import DOMAINS
from testkit.stream_processor.changes import invoice
from testkit.stream_processor.loyalty import invoice_of
from testkit.stream_processor.process import ProcessorOf, wait_until
from testkit.topics import Record, create_topic, read_topic

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.timeout(900)]

MICRO_BATCH = {"mode": "micro-batch", "interval": "100ms"}
ROCKSDB_OWN = 64 * MEGABYTE
"""The default size of RocksDB's write buffer."""
REAL_TIME = {"mode": "realtime", "checkpoint": "5s"}


def written(directory: Path, name: str, replaced: Mapping[str, Mapping[str, Any]], trigger: Mapping[str, Any]) -> Path:
    """Returns the file of a shipped pipeline with other keys and another trigger, named by its sink."""
    content = yaml.safe_load(next(DOMAINS.rglob(f"{name}.yaml")).read_text())
    content.pop("store", None)
    content["trigger"] = dict(trigger)
    for section, keys in replaced.items():
        content[section] |= keys
    content["name"] = content["sink"]["topic"]
    file = directory / f"{content['name']}.yaml"
    file.write_text(yaml.safe_dump(content))
    return file


def send(bootstrap: str, topic: str, *values: bytes, timestamp: int = 0) -> None:
    """Sends records; their timestamp is in milliseconds, by default that of now."""
    producer = Producer({"bootstrap.servers": bootstrap})
    for each in values:
        producer.produce(topic, each, b"key", timestamp=timestamp)
    producer.flush()


def of_new(invoice_number: str) -> bytes:
    return invoice(invoice_number).SerializeToString()


def invoices_on(bootstrap: str, topic: str) -> list[str]:
    """Each once: after a stop without a checkpoint some come again."""
    return sorted(set(map(number_of, read_topic(bootstrap, topic))))


def number_of(record: Record) -> str:
    return HomeDelivery.FromString(record.value or b"").invoice_number


@pytest.mark.long
def test_each_route_begins_and_places_its_records_as_its_file_says(
    kafka: str, tmp_path: Path, processor_of_files: ProcessorOf
) -> None:
    prefix = uuid4().hex[:8]
    source, sinks = f"{prefix}-invoices", {name: f"{prefix}-{name}" for name in ("all", "since", "new")}
    for topic, partitions in {source: 2, f"{source}.dead-letter": 1, **dict.fromkeys(sinks.values(), 3)}.items():
        create_topic(kafka, topic, partitions)
    since = datetime.now(UTC) - timedelta(hours=1)
    before, after = (round((since + timedelta(minutes=m)).timestamp() * 1000) for m in (-10, 10))
    for value, milliseconds in ((of_new("old"), before), (b"poison", before), (of_new("known"), after)):
        send(kafka, source, value, timestamp=milliseconds)
    starts = {"all": "earliest", "since": since.isoformat(), "new": "latest"}
    placed = {"all": {}, "since": {"partition_by": "invoice_number"}, "new": {"partition_by": "cardinality(lines)"}}
    files = [
        written(
            tmp_path,
            "home-delivery",
            {"source": {"topic": source, "starting_offsets": start}, "sink": {"topic": sinks[name], **placed[name]}},
            MICRO_BATCH if name == "all" else REAL_TIME,
        )
        for name, start in starts.items()
    ]
    processor = processor_of_files(*files)
    processor.start_ready()
    send(kafka, source, of_new("newest"))
    for sink in sinks.values():
        wait_until(lambda: "newest" in invoices_on(kafka, sink), lambda: processor.log)  # noqa: B023
    assert processor.stop() == 0
    send(kafka, source, of_new("meanwhile"))
    processor.start()
    for sink in sinks.values():
        wait_until(lambda: "meanwhile" in invoices_on(kafka, sink), lambda: processor.log)  # noqa: B023
    wait_until(lambda: bool(read_topic(kafka, f"{source}.dead-letter")), lambda: processor.log)

    assert invoices_on(kafka, sinks["all"]) == ["known", "meanwhile", "newest", "old"]
    assert invoices_on(kafka, sinks["since"]) == ["known", "meanwhile", "newest"]
    assert invoices_on(kafka, sinks["new"]) == ["meanwhile", "newest"]
    assert {each.partition for each in read_topic(kafka, sinks["all"])} == {partition_of("store-1", 3)}
    assert {(number_of(each), each.partition) for each in read_topic(kafka, sinks["since"])} == {
        (number, partition_of(number, 3)) for number in ("known", "newest", "meanwhile")
    }
    assert {each.partition for each in read_topic(kafka, sinks["new"])} == {1}
    # The record that cannot be decoded comes before the records of the two others.
    assert len(read_topic(kafka, f"{source}.dead-letter")) == 1


@pytest.mark.long
def test_a_group_is_written_once_for_what_a_batch_brings_and_its_state_has_the_memory_that_the_file_gives(
    kafka: str, tmp_path: Path, processor_of_files: ProcessorOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    prefix = uuid4().hex[:8]
    source, whole, cut = (f"{prefix}-{name}" for name in ("invoices", "whole", "cut"))
    for topic in (source, f"{source}.dead-letter", whole, cut):
        create_topic(kafka, topic, 1)
    send(kafka, source, *(invoice_of(f"i-{n}", "card", 100).SerializeToString() for n in range(1, 1_001)))
    triggers: dict[str, dict[str, Any]] = {whole: MICRO_BATCH, cut: {**MICRO_BATCH, "max_records": 250}}
    files = [
        written(tmp_path, "rewards-by-customer", {"source": {"topic": source}, "sink": {"topic": sink}}, trigger)
        for sink, trigger in triggers.items()
    ]
    content = yaml.safe_load(files[0].read_text())
    files[0].write_text(yaml.safe_dump({**content, "state": {"memory": "64MiB"}}))
    monkeypatch.setenv("SPARK_LOCAL_DIRS", str(tmp_path / "local"))
    processor = processor_of_files(*files)
    processor.start()
    for sink in triggers:
        wait_until(lambda: 1_000 in counts_on(kafka, sink), lambda: processor.log)  # noqa: B023

    assert write_buffers(tmp_path / "local") == {64 // 2 // 4 * MEGABYTE, ROCKSDB_OWN}
    assert counts_on(kafka, whole) == [1_000]
    assert counts_on(kafka, cut) == [250, 500, 750, 1_000]


def write_buffers(directory: Path) -> set[int]:
    """Returns the sizes of the write buffers of all stores of states below the directory, as RocksDB notes them."""
    options = (file.read_text() for file in directory.rglob("OPTIONS-*"))
    return {int(size) for text in options for size in re.findall(r"^\s*write_buffer_size=(\d+)$", text, re.MULTILINE)}


def counts_on(bootstrap: str, topic: str) -> list[int]:
    """Returns the number of invoices that each record tells."""
    records = (StateRecord.FromString(each.value or b"") for each in read_topic(bootstrap, topic))
    return [CustomerRewards.FromString(each.payload).invoices for each in records]


def test_a_moment_is_an_offset_of_each_partition(kafka: str) -> None:
    topics, topic = Topics(Settings(kafka_bootstrap=kafka)), uuid4().hex
    create_topic(kafka, topic, 2)
    producer = Producer({"bootstrap.servers": kafka})
    for partition, milliseconds in ((0, 1_000), (0, 2_000), (0, 3_000), (1, 1_000)):
        producer.produce(topic, b"value", partition=partition, timestamp=milliseconds)
    producer.flush()

    assert topics.starts(topic, "1970-01-01T00:00:02+00:00") == {0: 1, 1: 1}
    assert topics.starts(topic, "latest") == {0: 3, 1: 1}
    assert topics.starts(topic, "earliest") is None
