"""Records without a known time, through the real program: their rows are served, without a time."""

import json
import time
from pathlib import Path

import pytest
import yaml
from confluent_kafka import Producer

from testkit.stream_processor.model import read_fenced
from testkit.stream_processor.process import Processor, ProcessorOf, wait_until
from testkit.topics import create_topic, read_topic

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.timeout(900)]

NOW_MS = int(time.time() * 1000)
TIMES = {"milliseconds": NOW_MS, "microseconds": NOW_MS * 1000, "nanoseconds": NOW_MS * 10**6, "longest": 2**63 - 1}
TRIGGERS = {"batch": {"mode": "micro-batch", "interval": "1s"}, "now": {"mode": "realtime", "checkpoint": "5s"}}
ANY_TIME = {"message.timestamp.after.max.ms": str(2**63 - 1)}


@pytest.fixture
def processor(kafka: str, processor_of_files: ProcessorOf, tmp_path: Path) -> Processor:
    """Two pipelines over one table, in micro-batches and in real time."""
    create_topic(kafka, "times", 1, {"cleanup.policy": "compact", "min.compaction.lag.ms": "86400000", **ANY_TIME})
    create_topic(kafka, "times.dead-letter", 1)
    files = []
    for name, trigger in TRIGGERS.items():
        create_topic(kafka, f"times-{name}", 1, {"cleanup.policy": "compact"})
        content = {
            "name": f"times-{name}",
            "source": {"topic": "times", "message": "statecast.sales.v1.Store", "format": "table", "values": "json"},
            "group_by": "store_id",
            "keep": "latest",
            "sink": {"topic": f"times-{name}"},
            "trigger": trigger,
        }
        files.append(tmp_path / f"times-{name}.yaml")
        files[-1].write_text(yaml.safe_dump(content))
    return processor_of_files(*files)


def test_a_time_in_other_units_ends_nothing(kafka: str, processor: Processor) -> None:
    producer = Producer({"bootstrap.servers": kafka})
    for unit, stamp in TIMES.items():
        producer.produce("times", json.dumps({"store_id": unit}), unit, timestamp=stamp)
    producer.flush()
    processor.start_ready()

    def times_of(name: str) -> dict[str, int | None]:
        states = read_fenced(read_topic(kafka, f"times-{name}"))
        return {
            key: each.source.commit_time.ToMilliseconds() if each.source.HasField("commit_time") else None
            for key, each in states.items()
        }

    wanted = {**dict.fromkeys(TIMES), "milliseconds": NOW_MS}
    wait_until(lambda: all(times_of(name) == wanted for name in TRIGGERS), lambda: processor.log[-3000:])
    assert processor.stop() == 0
