"""Random invoices as plain events, keyed by store, some of them sent twice, and the plain model of their sums."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import timedelta
from random import Random
from typing import NamedTuple

from google.protobuf.json_format import MessageToJson

from statecast.sales.v1.invoice_pb2 import CUSTOMER_TYPE_NON_PRIME, CUSTOMER_TYPE_PRIME, Invoice
from testkit.stream_processor.changes import START, invoice
from testkit.topics import Record

PARTITIONS = 3
WITHIN = timedelta(hours=1)


class InvoiceEvent(NamedTuple):
    """An invoice where it stands in the topic."""

    partition: int
    offset: int
    time_ms: int
    row: Invoice

    @property
    def place(self) -> tuple[int, int]:
        """Its order among the events of a batch."""
        return self.offset, self.partition

    def record(self, values: str) -> Record:
        """Returns the record, with the row as `protobuf` or `json`."""
        value = self.row.SerializeToString() if values == "protobuf" else MessageToJson(self.row).encode()
        return Record(self.partition, self.offset, self.row.store_id.encode(), value, {}, self.time_ms)


def invoice_events(chance: Random, events: int = 60) -> list[InvoiceEvent]:
    """Invoices of a few customers at a few stores, which are their partitions; some are sent again, near or later."""
    ends, sent = [0] * PARTITIONS, list[InvoiceEvent]()
    for number in range(events):
        row, store = invoice(f"invoice-{number}", items=["item"] * chance.randint(0, 2)), chance.randrange(PARTITIONS)
        row.store_id, row.customer_card_no = f"store-{store}", f"card-{chance.randrange(4)}"
        row.customer_type = chance.choice([CUSTOMER_TYPE_PRIME, CUSTOMER_TYPE_PRIME, CUSTOMER_TYPE_NON_PRIME])
        row.total_amount_cents = chance.randrange(100_000)
        moment = START + timedelta(minutes=7 * number)
        # No two are of the same time.
        row.created_at.FromDatetime(moment - timedelta(minutes=chance.randrange(30), microseconds=number))
        if sent and chance.random() < 0.3:
            row, store = (
                (again := chance.choice(sent)).row,
                chance.choice([again.partition, chance.randrange(PARTITIONS)]),
            )
        sent.append(InvoiceEvent(store, ends[store], int(moment.timestamp() * 1000), row))
        ends[store] += 1
    return sent


def without_duplicates(batches: Iterable[Sequence[InvoiceEvent]]) -> Iterator[list[InvoiceEvent]]:
    """Yields the events that count, by batch: the first of an invoice, and one that comes WITHIN or more after it."""
    firsts: dict[str, int] = {}
    for batch in batches:
        counting = []
        for event in sorted(batch, key=lambda each: each.place):
            first = firsts.get(event.row.invoice_number)
            if first is None or abs(event.time_ms - first) >= WITHIN // timedelta(milliseconds=1):
                firsts[event.row.invoice_number] = event.time_ms
                counting.append(event)
        yield counting
