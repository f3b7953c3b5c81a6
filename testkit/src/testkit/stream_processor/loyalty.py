"""Random histories of customers' invoices, and a plain model of the notifications about their points."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from random import Random

from statecast.change.v1.change_pb2 import OPERATION_CREATE, OPERATION_SNAPSHOT
from statecast.sales.v1.invoice_pb2 import CUSTOMER_TYPE_NON_PRIME, CUSTOMER_TYPE_PRIME, Invoice, InvoiceChange
from statecast.sales.v1.loyalty_notification_pb2 import LoyaltyNotification
from testkit.stream_processor.changes import invoice, invoice_change

Notifications = dict[str, list[LoyaltyNotification]]
"""By the customer's card, in their order."""
NEW = (OPERATION_CREATE, OPERATION_SNAPSHOT)


def invoice_of(number: str, card: str, cents: int, store: str = "store-1") -> Invoice:
    """Returns an invoice of a PRIME customer."""
    row = invoice(number, items=[])
    row.customer_card_no, row.total_amount_cents, row.store_id = card, cents, store
    return row


def loyalty_history(chance: Random, changes: int, invoices: int, cards: int) -> Iterator[InvoiceChange]:
    """Changes of invoices that move between customers and kinds, with deletes, and snapshots that read again.

    Each version of an invoice has an amount of its own. An invoice stays with its store, so with a partition.
    """
    rows: dict[str, Invoice] = {}
    for sequence in range(1, changes + 1):
        number = f"invoice-{chance.randrange(invoices)}"
        before = rows.pop(number, None)
        if before is not None and chance.random() < 0.1:
            rows[number] = before
            yield invoice_change(None, before, sequence, snapshot=True)
            continue
        if before is None or chance.random() > 0.2:
            row = invoice_of(number, f"card-{chance.randrange(cards)}", 10 * sequence, f"store-{number[-1]}")
            row.customer_type = CUSTOMER_TYPE_PRIME if chance.random() < 0.8 else CUSTOMER_TYPE_NON_PRIME
            rows[number] = row
        yield invoice_change(before, rows.get(number), sequence)


class Loyalty:
    """Tells customers of new PRIME invoices, as of all that came before."""

    def __init__(self) -> None:
        self._rows: dict[str, tuple[int, Invoice | None]] = {}

    def tell(self, batch: Iterable[InvoiceChange]) -> Notifications:
        """Returns the notifications of a batch, in the order of the log. An older change of a row makes none."""
        notifications: Notifications = defaultdict(list)
        for change in sorted(batch, key=lambda each: each.source.log_sequence_number):
            row = change.after if change.HasField("after") else change.before
            last, known = self._rows.get(row.invoice_number, (0, None))
            if change.source.log_sequence_number <= last:
                continue
            now = row if change.HasField("after") and row.customer_type == CUSTOMER_TYPE_PRIME else None
            self._rows[row.invoice_number] = change.source.log_sequence_number, now
            entered = known is None or (now is not None and known.customer_card_no != now.customer_card_no)
            if now is not None and entered and change.operation in NEW:
                notifications[now.customer_card_no].append(self._notification(now))
        return dict(notifications)

    def points(self, card: str) -> int:
        """Returns the customer's current points."""
        rows = [row for _, row in self._rows.values() if row is not None and row.customer_card_no == card]
        return sum(row.total_amount_cents // 100 for row in rows)

    def _notification(self, row: Invoice) -> LoyaltyNotification:
        return LoyaltyNotification(
            invoice_number=row.invoice_number,
            customer_card_no=row.customer_card_no,
            total_amount_cents=row.total_amount_cents,
            earned_points=row.total_amount_cents // 100,
            total_points=self.points(row.customer_card_no),
        )
