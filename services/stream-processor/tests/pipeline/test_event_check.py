"""A pipeline of events, checked against the contract."""

import pytest

from statecast_domains.errors import PipelineFileError
from stream_processor.pipeline.pipeline import explain
from testkit.stream_processor.micro_batches import PipelineOf

EVENTS = {"topic": "pos-invoices", "message": "statecast.sales.v1.Invoice", "format": "events"}


def test_events_are_explained_as_what_they_are(shipped: PipelineOf) -> None:
    source = {**EVENTS, "values": "json"}
    same = {"deduplicate": {"by": "invoice_number", "within": "1h"}, "time": "created_at"}

    lines = explain(shipped("invoices-by-store", source={**source, **same}))
    assert "pos-invoices: statecast.sales.v1.Invoice as events of json values" in lines[1]
    assert "by invoice_number, within 1h" in lines[2]
    assert "per key: the newest event, by created_at" in lines[3]
    assert "nothing; events are passed on, at least once" in explain(shipped("home-delivery", source=source))[-4]


@pytest.mark.parametrize(
    ("name", "more", "problem"),
    [
        (
            "sales-by-store",
            {"deduplicate": {"by": "number", "within": "1h"}},
            "source.deduplicate.by: no field 'number'",
        ),
        (
            "sales-by-store",
            {"deduplicate": {"by": "lines.item_code", "within": "1h"}},
            "source.deduplicate.by: .* many",
        ),
        (
            "invoices-by-store",
            {"time": "currency"},
            "source.time: currency is of type string; it must be one of: times",
        ),
        ("sales-by-store", {"message": "statecast.sales.v1.Invoices"}, "source.message: no message"),
    ],
)
def test_names_of_events_that_do_not_fit_are_named(
    shipped: PipelineOf, name: str, more: dict[str, object], problem: str
) -> None:
    source = {**EVENTS, **more}

    with pytest.raises(PipelineFileError, match=problem):
        shipped(name, source=source)


def test_min_and_max_need_no_word_with_events_and_are_no_totals(shipped: PipelineOf) -> None:
    totals = {"route": {"totals": {"total_points": "max(total_amount_cents)"}}}

    assert shipped("sales-by-store", source=EVENTS, keep={"aggregate": {"amount_cents": "max(total_amount_cents)"}})
    with pytest.raises(PipelineFileError, match=r"keep\.route\.totals\.total_points: max cannot be taken back"):
        shipped("loyalty-notifications", source=EVENTS, keep=totals)
