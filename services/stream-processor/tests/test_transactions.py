"""Transactions of producers, through the real program: aborted records are nowhere, and an open one waits alone."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from confluent_kafka import Producer

from statecast.orders.v1.order_pb2 import Order
from statecast.sales.v1.invoice_with_store_pb2 import InvoiceWithStore
from statecast.sales.v1.store_pb2 import Store
from statecast.state.v1.state_pb2 import StateRecord
from testkit.stream_processor.changes import START, change, invoice, order
from testkit.stream_processor.model import read_fenced
from testkit.stream_processor.process import Processor, ProcessorOf, wait_until
from testkit.topics import create_topic, read_checkpointed, read_topic

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.timeout(900)]

PREFIX = "transactions."
COMPACTED = {"cleanup.policy": "compact", "min.compaction.lag.ms": "86400000"}
PARCELS = {
    "name": "parcels-latest",
    "source": {"topic": "parcels", "message": "statecast.sales.v1.Store", "format": "table", "values": "json"},
    "group_by": "store_id",
    "keep": "latest",
    "sink": {"topic": "parcels-latest"},
    "trigger": {"mode": "micro-batch", "interval": "1s"},
}


class Writer:
    """A producer of transactions. Each of its records goes to a partition that the caller names."""

    def __init__(self, bootstrap: str, name: str) -> None:
        self._producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": name})
        self._producer.init_transactions()

    def write(self, end: str, *records: tuple[str, int, str, bytes]) -> None:
        """Writes records (topic, partition, key, value) in a transaction that then aborts, commits or stays open."""
        self._producer.begin_transaction()
        for topic, partition, key, value in records:
            self._producer.produce(PREFIX + topic, value, key.encode(), partition)
        self._producer.flush()
        self.end(end)

    def end(self, end: str) -> None:
        if end != "open":
            getattr(self._producer, f"{end}_transaction")()


def parcel(key: str, name: str) -> tuple[str, int, str, bytes]:
    """Returns the record of a parcel; its key's number says its partition."""
    return "parcels", int(key[1:]) % 2, key, json.dumps({"store_id": key, "name": name}).encode()


def changed(key: str, cents: int, sequence: int) -> tuple[str, int, str, bytes]:
    row = order(key)
    row.total_cents = cents
    return "orders", 0, key, change(None, row, sequence).SerializeToString()


def store(name: str, sequence: int) -> tuple[str, int, str, bytes]:
    state = StateRecord(epoch=1, sequence=sequence, payload=Store(store_id="s", name=name).SerializeToString())
    state.source.commit_time.FromDatetime(START)
    return "stores-by-key", 0, "s", state.SerializeToString()


@pytest.fixture
def processor(kafka: str, start_processor: ProcessorOf, tmp_path: Path) -> Processor:
    """A pipeline of rows in micro-batches, one of changes and one that joins a table in real time."""
    for name in ("orders-by-key", "parcels-latest", "invoices-with-store"):
        create_topic(kafka, PREFIX + name, 1, {"cleanup.policy": "compact"})
    for name in ("orders", "invoices", "orders.dead-letter", "invoices.dead-letter", "parcels.dead-letter"):
        create_topic(kafka, PREFIX + name, 1)
    create_topic(kafka, f"{PREFIX}parcels", 2, COMPACTED)
    create_topic(kafka, f"{PREFIX}stores-by-key", 1, COMPACTED)
    own = tmp_path / "own"
    own.mkdir()
    (own / "parcels-latest.yaml").write_text(yaml.safe_dump(PARCELS))
    named = ("orders/orders-by-key", "invoices/invoices-with-store")
    return start_processor(PREFIX, more=[own / "parcels-latest.yaml"], named=named, checkpoint_interval="5s")


def test_aborted_records_are_nowhere_and_an_open_transaction_holds_back_its_partition_alone(
    kafka: str, processor: Processor
) -> None:
    def rows(topic: str) -> dict[str, StateRecord]:
        return read_fenced(read_topic(kafka, PREFIX + topic))

    def parcels() -> dict[str, str]:
        return {key: Store.FromString(each.payload).name for key, each in rows("parcels-latest").items()}

    def orders() -> dict[str, int]:
        return {key: Order.FromString(each.payload).total_cents for key, each in rows("orders-by-key").items()}

    def joined() -> dict[str, str]:
        read = rows("invoices-with-store").items()
        return {key: InvoiceWithStore.FromString(each.payload).store.name for key, each in read}

    def wait_for(wanted: dict[str, str] | dict[str, int], read: Callable[[], object]) -> None:
        wait_until(lambda: read() == wanted, lambda: f"{read()}, not {wanted}: {processor.log[-3000:]}")

    writer, hanging = Writer(kafka, "writer"), Writer(kafka, "hanging")
    writer.write("commit", parcel("p1", "due"), parcel("p2", "due"), changed("o1", 1, 1), store("Kept", 1))
    writer.write("abort", parcel("p1", "paid"), parcel("p3", "paid"), changed("o1", 2, 2), store("Aborted", 2))
    processor.start_ready()
    row = invoice("i1")
    row.store_id = "s"
    writer.write("abort", parcel("p2", "paid"), changed("o2", 2, 3))
    writer.write("commit", parcel("p4", "new"), changed("o3", 3, 4), ("invoices", 0, "i1", row.SerializeToString()))

    wait_for({"p1": "due", "p2": "due", "p4": "new"}, parcels)
    wait_for({"o1": 1, "o3": 3}, orders)
    wait_for({"i1": "Kept"}, joined)

    hanging.write("open", parcel("p6", "open"), changed("o4", 4, 5))
    writer.write("commit", parcel("p8", "behind"), parcel("p5", "beside"), changed("o5", 5, 6))
    wait_for({"p1": "due", "p2": "due", "p4": "new", "p5": "beside"}, parcels)
    reason = f"partition 0 of {PREFIX}parcels has an open transaction since offset 6: 3 records wait"
    wait_until(lambda: reason in processor.log, lambda: processor.log[-3000:])
    metric = f'stream_processor_waiting_records{{topic="{PREFIX}parcels"}} '
    assert f"{metric}3.0" in processor.get("/metrics")[1]
    assert orders() == {"o1": 1, "o3": 3}

    hanging.end("commit")
    wait_for({"p1": "due", "p2": "due", "p4": "new", "p5": "beside", "p6": "open", "p8": "behind"}, parcels)
    wait_for({"o1": 1, "o3": 3, "o4": 4, "o5": 5}, orders)
    wait_until(lambda: f"{metric}0.0" in processor.get("/metrics")[1], lambda: processor.log[-3000:])
    assert "passed over offset" not in processor.log

    # The mark of a transaction is the last entry of each log: nothing waits for it, even after a restart.
    for topic in ("orders-by-key", "parcels-latest"):
        count = len(read_topic(kafka, PREFIX + topic))
        wait_until(lambda: read_checkpointed(kafka, PREFIX + topic, 1) == count, lambda: processor.log[-3000:])  # noqa: B023  called at once
    assert processor.stop() == 0
    processor.start_ready()
    writer.write("commit", parcel("p1", "sent"))
    wait_until(lambda: parcels()["p1"] == "sent", lambda: processor.log[-3000:])
    assert processor.stop() == 0
