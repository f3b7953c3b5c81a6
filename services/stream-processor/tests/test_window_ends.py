"""Windows that end in real-time mode, with a kill around their end."""

from datetime import timedelta
from uuid import uuid4

import pytest
from confluent_kafka import Producer

from statecast.sales.v1.hourly_sales_pb2 import HourlySales
from testkit.stream_processor.changes import START, invoice, invoice_change
from testkit.stream_processor.model import read_fenced
from testkit.stream_processor.process import ProcessorOf, wait_until
from testkit.topics import create_topic, read_topic

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.long, pytest.mark.timeout(1200)]


def test_windows_end_through_a_kill_and_do_not_come_back(kafka: str, processor_of: ProcessorOf) -> None:
    name = f"sales-{uuid4().hex[:8]}"
    source = f"{name}-invoices"
    for topic in (source, f"{source}.dead-letter", name):
        create_topic(kafka, topic, partitions=2)
    content = {
        "name": name,
        "source": {"topic": source, "message": "statecast.sales.v1.InvoiceChange", "key": "invoice_number"},
        "group_by": "store_id",
        "window": {"time": "created_at", "size": "1h", "hop": "30m", "lateness": "30m", "keep": "2h"},
        "keep": {"aggregate": {"invoices": "count(*)", "amount_cents": "sum(total_amount_cents)"}},
        "sink": {"topic": name, "message": "statecast.sales.v1.HourlySales"},
    }
    processor = processor_of(content, checkpoint_interval="5s")
    sequence = iter(range(1, 100))

    def send(partition: int, *hours: float) -> None:
        """Sends a new invoice of each hour, made when it is committed."""
        producer = Producer({"bootstrap.servers": kafka})
        for hour in hours:
            row = invoice(f"invoice-{next(sequence)}", items=["item"])
            row.created_at.FromDatetime(START + timedelta(hours=hour))
            change = invoice_change(None, row, next(sequence))
            change.source.commit_time.CopyFrom(row.created_at)
            producer.produce(source, value=change.SerializeToString(), partition=partition)
        producer.flush()

    def windows() -> dict[str, int]:
        """By the hour and minute of its start, the invoices of a window."""
        held = read_fenced(read_topic(kafka, name))
        return {key.split("\0")[1][11:16]: HourlySales.FromString(each.payload).invoices for key, each in held.items()}

    def wait_for(wanted: dict[str, int]) -> None:
        wait_until(lambda: windows() == wanted, lambda: f"{windows()} is not {wanted}: {processor.log[-3000:]}")

    processor.start_ready()
    send(0, 0.25, 0.75)
    send(1, 0.8)
    wait_for({"11:30": 1, "12:00": 3, "12:30": 2})

    # The clock is at 15:15: the windows end that lasted until 12:30 and until 13:00.
    send(1, 3.25)
    wait_for({"12:30": 2, "14:30": 1, "15:00": 1})

    processor.kill()
    send(1, 3.6)
    send(0, 0.9)
    processor.start_ready()
    wait_for({"14:30": 1, "15:00": 2, "15:30": 1})
    assert processor.stop() == 0
