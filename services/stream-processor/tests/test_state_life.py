"""How much state deleted rows leave, and for how long."""

from random import Random

import pytest
from confluent_kafka import Producer

from testkit.stream_processor.changes import INVOICE_ROWS, change, invoice, invoice_change, order
from testkit.stream_processor.micro_batches import BatchesOf, PipelineOf
from testkit.stream_processor.pipeline_files import latest_orders
from testkit.stream_processor.process import ProcessorOf, wait_until

GROUPS = 2_000
NAME = 32
"""Random letters in the name of a group; random, because common parts of keys are compressed."""
BESIDE_NAME = 24
"""Bytes of state per group in addition to its name: the bound in the README."""
GROUPING, REMEMBERING = 0, 1
"""The operators that add up and that remember rows, by their number; Spark counts from the sink."""
ROWS = 20

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]


def test_what_is_left_of_groups_and_rows_is_small(batches_of: BatchesOf, shipped: PipelineOf) -> None:
    chance = Random(1)
    rows = [invoice(f"{chance.getrandbits(128):032x}") for _ in range(GROUPS)]
    for row in rows:
        row.store_id = f"{chance.getrandbits(128):032x}"
    played = batches_of(shipped("hourly-sales-by-store", source=INVOICE_ROWS))

    played.add(invoice_change(None, row, 1).SerializeToString() for row in rows)
    played.add(invoice_change(row, None, 2).SerializeToString() for row in rows)
    played.run()
    full, empty = (played.changelog_bytes(GROUPING, batch) / GROUPS for batch in range(2))
    gone = played.changelog_bytes(REMEMBERING, 1) / GROUPS

    assert NAME < full < NAME + BESIDE_NAME
    assert NAME < empty < NAME + BESIDE_NAME
    assert NAME < gone < NAME + BESIDE_NAME


@pytest.mark.kafka
@pytest.mark.long
def test_rows_that_are_gone_are_forgotten_in_real_time_mode(kafka: str, prefix: str, processor_of: ProcessorOf) -> None:
    program = processor_of(latest_orders(prefix, forget_deleted="1s"), drain_s="0")
    producer = Producer({"bootstrap.servers": kafka})

    def send(first: int, *rows: tuple[str, bool]) -> None:
        for sequence, (name, lives) in enumerate(rows, first):
            order_change = change(None, order(name), sequence) if lives else change(order(name), None, sequence)
            producer.produce(f"{prefix}orders", order_change.SerializeToString(), name.encode())
        producer.flush()

    def held(rows: int) -> None:
        line = f'stream_processor_state_rows{{query="latest"}} {rows}.0'
        wait_until(lambda: line in program.get("/metrics")[1], lambda: program.get("/metrics")[1])

    program.start_ready()
    names = [f"order-{number}" for number in range(ROWS)]
    send(1, *[(name, True) for name in names])
    held(ROWS)

    send(ROWS + 1, *[(name, False) for name in names[1:]])
    held(1)

    assert program.stop() == 0
