"""A table and the rows that join it are loaded at once, by the real program: each row has its table's row."""

from collections.abc import Callable

import pytest
from confluent_kafka import Producer

from statecast.change.v1.change_pb2 import OPERATION_SNAPSHOT
from statecast.sales.v1.invoice_with_store_pb2 import InvoiceWithStore
from statecast.sales.v1.store_pb2 import Store, StoreChange
from testkit.stream_processor.changes import START, invoice
from testkit.stream_processor.model import read_fenced
from testkit.stream_processor.process import ProcessorOf, wait_until
from testkit.topics import create_topic, read_topic

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.long, pytest.mark.timeout(900)]

STORES = 20_000
TOPICS = ("stores", "invoices", "stores.dead-letter", "invoices.dead-letter", "stores-by-key", "invoices-with-store")


def store_change(number: int) -> bytes:
    change = StoreChange(operation=OPERATION_SNAPSHOT, after=Store(store_id=f"store-{number}", name=f"Shop {number}"))
    change.source.epoch, change.source.log_sequence_number, change.source.table = 1, number + 1, "stores"
    change.source.commit_time.FromDatetime(START)
    return change.SerializeToString()


def sale(number: int) -> bytes:
    row = invoice(f"invoice-{number}")
    row.store_id = f"store-{number}"
    return row.SerializeToString()


@pytest.fixture
def loaded_topics(kafka: str) -> Callable[[str], str]:
    """Makes the topics after a prefix, and fills those of both tables."""

    def make(prefix: str) -> str:
        for topic in TOPICS:
            create_topic(kafka, prefix + topic, partitions=2)
        producer = Producer({"bootstrap.servers": kafka, "queue.buffering.max.messages": 3 * STORES})
        for number in range(STORES):
            producer.produce(f"{prefix}stores", store_change(number), f"store-{number}".encode())
        # Those that were loaded last are asked for first.
        for number in range(STORES - 1, STORES - 2001, -1):
            producer.produce(f"{prefix}invoices", sale(number), f"invoice-{number}".encode())
        producer.flush()
        return prefix

    return make


def test_no_row_is_joined_before_its_table_is_there(
    kafka: str, loaded_topics: Callable[[str], str], start_processor: ProcessorOf
) -> None:
    prefix = loaded_topics("first-load.")
    names = ["invoices/invoices-with-store", "invoices/stores-by-key"]
    processor = start_processor(prefix, named=names, checkpoint_interval="5s")
    processor.start_ready()

    def joined() -> dict[str, str]:
        rows = read_fenced(read_topic(kafka, f"{prefix}invoices-with-store")).items()
        return {key: InvoiceWithStore.FromString(state.payload).store.name for key, state in rows}

    expected = {f"invoice-{number}": f"Shop {number}" for number in range(STORES - 2000, STORES)}
    wait_until(lambda: len(joined()) == len(expected), lambda: f"{len(joined())} rows; {processor.log[-3000:]}")
    assert joined() == expected
    assert "invoices-with-store waits for the first checkpoint of stores-by-key, which it joins" in processor.log

    # With a checkpoint it waits for nothing: the table has been there since.
    assert processor.stop() == 0
    waits = processor.log.count("waits for the first checkpoint")
    processor.start_ready()
    assert processor.log.count("waits for the first checkpoint") == waits
