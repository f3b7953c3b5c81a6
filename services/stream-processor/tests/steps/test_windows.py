"""Windows beyond the years that a key has a text for."""

from collections.abc import Callable
from datetime import datetime

import pytest
from pyspark.sql import DataFrame

from statecast.sales.v1.invoice_pb2 import InvoiceChange
from stream_processor.definition.pipeline import Pipeline
from stream_processor.steps.decode import decode
from stream_processor.steps.flow import checked_changes
from stream_processor.steps.functions import Functions
from testkit.stream_processor.changes import START, invoice, invoice_change

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]


def sold(sequence: int, created: datetime, committed: datetime, cents: int = 100) -> InvoiceChange:
    """A new invoice of the store `s`."""
    row = invoice(f"invoice-{sequence}", items=["item"])
    row.store_id = "s"
    row.total_amount_cents = cents
    row.created_at.FromDatetime(created)
    made = invoice_change(None, row, sequence)
    made.source.commit_time.FromDatetime(committed)
    return made


@pytest.mark.parametrize(
    ("created", "hop"),
    [("9999-12-31T23:30:00", "1h"), ("9999-12-31T22:59:00", "30m"), ("0001-01-01T00:10:00", "30m")],
)
def test_a_window_beyond_the_years_of_a_key_is_a_dead_letter_with_the_reason(
    shipped: Callable[..., Pipeline], records: Callable[..., DataFrame], functions: Functions, created: str, hop: str
) -> None:
    window = {"time": "created_at", "size": "1h", "hop": hop}
    pipeline = shipped("hourly-sales-by-store", window=window)
    change = sold(1, datetime.fromisoformat(created), START)

    [line] = checked_changes(decode(records(change.SerializeToString()), pipeline, functions), pipeline).collect()

    reason = "begins before the year 1 or ends after 9999, and a key has no text for it"
    if hop == "30m" and created.startswith("9999"):
        assert line.problem is None
    else:
        assert line.problem == f"after.created_at is in a window that {reason}"
