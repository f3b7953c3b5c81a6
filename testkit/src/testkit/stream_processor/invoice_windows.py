"""Random histories of invoices around closing windows, and the plain model of the windows' sums."""

from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime, timedelta
from random import Random

from google.protobuf.timestamp_pb2 import Timestamp

from statecast.sales.v1.invoice_pb2 import Invoice, InvoiceChange
from testkit.stream_processor.changes import START, invoice, invoice_change

SIZE, LATENESS = timedelta(hours=1), timedelta(minutes=90)
HOURLY = {"time": "created_at", "size": "1h", "lateness": "90m"}
EACH_QUARTER = {**HOURLY, "hop": "15m"}
QUARTER = timedelta(minutes=15)
STEP = timedelta(minutes=7)
"""Between two commits."""

Sales = dict[str, tuple[int, int]]


def invoice_history(chance: Random, steps: int = 120) -> list[InvoiceChange]:
    """Changes of a few invoices: moves between stores and hours, deletes, new beginnings; some come too late."""
    rows: dict[str, Invoice] = {}
    changes = []
    for sequence in range(1, steps + 1):
        now = START + sequence * STEP
        number = f"invoice-{chance.randrange(6)}"
        before, after = rows.pop(number, None), None
        if before is None or chance.random() > 0.2:
            after = invoice(number, items=["item"] * chance.randint(1, 4))
            after.store_id = f"store-{chance.randrange(2)}"
            after.created_at.FromDatetime(now - timedelta(minutes=chance.randrange(180)))
            rows[number] = after
        change = invoice_change(before, after, sequence)
        change.source.commit_time.FromDatetime(now)
        changes.append(change)
    return changes


def sales_by_window(changes: list[InvoiceChange], hop: timedelta = SIZE) -> Sales:
    """Key → (invoices, cents), of the windows that have any in the end; one begins every `hop`.

    A change that touches a closed window is set aside whole. A row that has moved leaves its part in a window
    that has closed since.
    """
    counted: dict[str, Invoice] = {}
    sums: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for each in changes:
        if not _is_in_time(each, hop):
            continue
        if was := counted.pop(_rows(each)[0].invoice_number, None):
            _add(sums, was, -1, [start for start in _starts(was, hop) if _open(start, each)])
        if each.HasField("after"):
            counted[each.after.invoice_number] = each.after
            _add(sums, each.after, 1, _starts(each.after, hop))
    return {key: (invoices, cents) for key, (invoices, cents) in sums.items() if invoices}


def kept(changes: list[InvoiceChange], hop: timedelta, keep: timedelta) -> Sales:
    """Returns the windows that have not ended: at most `keep` before the last commit."""
    clock = max(each.source.commit_time.ToDatetime() for each in changes)
    sales = sales_by_window(changes, hop)
    return {key: amounts for key, amounts in sales.items() if _time(key.split("\0")[2]) >= clock - keep}


def _is_in_time(each: InvoiceChange, hop: timedelta) -> bool:
    return all(_open(start, each) for row in _rows(each) for start in _starts(row, hop))


def _rows(each: InvoiceChange) -> list[Invoice]:
    return [getattr(each, name) for name in ("before", "after") if each.HasField(name)]


def _time(text: str) -> datetime:
    return datetime.strptime(text, "%Y-%m-%dT%H:%M:%S.%fZ")  # noqa: DTZ007  as protobuf's, which is UTC


def _add(sums: dict[str, list[int]], row: Invoice, sign: int, starts: Iterable[int]) -> None:
    for start in starts:
        key = "\0".join([row.store_id, _text(start), _text(start + SIZE.seconds)])
        sums[key][0] += sign
        sums[key][1] += sign * row.total_amount_cents


def _open(start: int, change: InvoiceChange) -> bool:
    return start + SIZE.seconds >= change.source.commit_time.seconds - LATENESS.seconds


def _starts(row: Invoice, hop: timedelta) -> range:
    """Returns the starts of the windows that the row is in, in seconds since 1970."""
    moment: Timestamp = row.created_at
    last = moment.seconds - moment.seconds % hop.seconds
    return range(last - SIZE.seconds + hop.seconds, last + 1, hop.seconds)


def _text(seconds: int) -> str:
    return Timestamp(seconds=seconds).ToDatetime().strftime("%Y-%m-%dT%H:%M:%S.%fZ")
