"""Sums over rows that another pipeline has joined with a table, read from that pipeline's topic."""

import pytest

from statecast.sales.v1.city_sales_pb2 import CitySales
from statecast.sales.v1.invoice_with_store_pb2 import InvoiceWithStore
from statecast.sales.v1.store_pb2 import Store
from statecast.state.v1.state_pb2 import StateRecord
from testkit.stream_processor.changes import START, invoice, invoice_change
from testkit.stream_processor.micro_batches import PipelineOf
from testkit.stream_processor.one_batch import OneBatch

pytestmark = pytest.mark.timeout(600)


def joined(number: str, lines: int, sequence: int, city: str | None) -> tuple[bytes, bytes]:
    """Makes a record of invoices-with-store: 250 hundredths per line, in a store of that city, which may be unknown."""
    row = invoice(number, items=["item"] * lines)
    message = InvoiceWithStore(invoice=row, store=None if city is None else Store(store_id="store-1", city=city))
    source = invoice_change(None, row, sequence).source
    state = StateRecord(epoch=1, sequence=sequence, source=source, payload=message.SerializeToString())
    return number.encode(), state.SerializeToString()


def test_a_row_leaves_the_group_that_it_was_joined_into(shipped: PipelineOf, batch: OneBatch) -> None:
    records = [
        joined("a", lines=1, sequence=1, city="Pune"),
        joined("b", lines=2, sequence=2, city="Pune"),
        joined("c", lines=4, sequence=3, city=None),
        joined("b", lines=3, sequence=4, city="Delhi"),
    ]

    written = batch.lines(shipped("sales-by-city"), batch.records(*records, time=START)).collect()

    states = {bytes(line.key).decode(): StateRecord.FromString(bytes(line.value)) for line in written}
    assert {city: CitySales.FromString(state.payload) for city, state in states.items()} == {
        "Pune": CitySales(city="Pune", invoices=1, amount_cents=250),
        "Delhi": CitySales(city="Delhi", invoices=1, amount_cents=750),
    }


def test_a_group_has_the_source_of_its_newest_commit_from_any_partition(shipped: PipelineOf, batch: OneBatch) -> None:
    older, newer = joined("a", lines=1, sequence=1000, city="Pune"), joined("b", lines=2, sequence=5, city="Pune")
    state = StateRecord.FromString(newer[1])
    state.source.commit_time.seconds += 60

    records = batch.records(older, (newer[0], state.SerializeToString()), time=START)
    [line] = batch.lines(shipped("sales-by-city"), records).collect()

    assert StateRecord.FromString(bytes(line.value)).source == state.source
