"""How much state deleted rows leave, and for how long."""

from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from uuid import uuid4

import pytest
from confluent_kafka import Producer
from pyspark.sql import SparkSession

from stream_processor.pipeline.pipeline import Pipeline
from stream_processor.steps.functions import Functions
from testkit.ports import free_ports
from testkit.stream_processor.changes import INVOICE_ROWS, change, invoice, invoice_change, order
from testkit.stream_processor.micro_batches import MicroBatches
from testkit.stream_processor.process import Processor, wait_until

GROUPS = 2_000
NAME = 32
"""Random letters in the name of a group; random, because what keys have in common is compressed."""
BESIDE_NAME = 24
"""Bytes of state per group in addition to its name: the bound in the README."""
GROUPING, REMEMBERING = 0, 1
"""The operators that add up and that remember rows, by their number; Spark counts from the sink."""
ROWS = 20
PIPELINE = """
name: latest
source: {{topic: {prefix}orders, message: statecast.orders.v1.OrderChange, format: protobuf}}
group_by: order_id
keep: latest
sink: {{topic: {prefix}orders-by-key}}
forget_deleted: 1s
trigger: {{mode: realtime, checkpoint: 5s}}
"""

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]


def test_what_is_left_of_groups_and_rows_is_small(
    tmp_path: Path, spark: SparkSession, functions: Functions, shipped: Callable[..., Pipeline]
) -> None:
    chance = Random(1)
    rows = [invoice(f"{chance.getrandbits(128):032x}") for _ in range(GROUPS)]
    for row in rows:
        row.store_id = f"{chance.getrandbits(128):032x}"
    played = MicroBatches(tmp_path, shipped("hourly-sales-by-store", source=INVOICE_ROWS), spark, functions)

    played.add(invoice_change(None, row, 1).SerializeToString() for row in rows)
    played.add(invoice_change(row, None, 2).SerializeToString() for row in rows)
    played.run()
    full, empty = (played.changelog_bytes(GROUPING, batch) / GROUPS for batch in range(2))
    gone = played.changelog_bytes(REMEMBERING, 1) / GROUPS

    assert NAME < full < NAME + BESIDE_NAME
    assert NAME < empty < NAME + BESIDE_NAME
    assert NAME < gone < NAME + BESIDE_NAME


@pytest.fixture
def processor(tmp_path: Path, kafka: str, create_topics: Callable[[str], None]) -> Iterator[tuple[Processor, str]]:
    """The real program in real-time mode, and its source topic."""
    prefix = f"{uuid4().hex[:8]}."
    create_topics(prefix)
    file = tmp_path / "latest.yaml"
    file.write_text(PIPELINE.format(prefix=prefix))
    processor = Processor(tmp_path, kafka, free_ports(1)[0], [file], drain_s="0")
    yield processor, f"{prefix}orders"
    processor.close()


@pytest.mark.kafka
@pytest.mark.long
def test_rows_that_are_gone_are_forgotten_in_real_time_mode(kafka: str, processor: tuple[Processor, str]) -> None:
    program, source = processor
    producer = Producer({"bootstrap.servers": kafka})

    def send(first: int, *rows: tuple[str, bool]) -> None:
        for sequence, (name, lives) in enumerate(rows, first):
            order_change = change(None, order(name), sequence) if lives else change(order(name), None, sequence)
            producer.produce(source, order_change.SerializeToString(), name.encode())
        producer.flush()

    def held(rows: int) -> None:
        line = f'stream_processor_state_rows{{query="latest"}} {rows}.0'
        wait_until(lambda: line in program.get("/metrics")[1], lambda: program.get("/metrics")[1])

    program.start()
    program.wait_ready()
    names = [f"order-{number}" for number in range(ROWS)]
    send(1, *[(name, True) for name in names])
    held(ROWS)

    send(ROWS + 1, *[(name, False) for name in names[1:]])
    held(1)

    assert program.stop() == 0
