"""Passing rows on to a plain topic: which changes, under which key, as which message."""

from collections.abc import Callable
from functools import partial

import pytest

from statecast.partitioning import partition_of
from statecast.sales.v1.home_delivery_pb2 import HomeDelivery
from statecast.sales.v1.invoice_pb2 import CUSTOMER_TYPE_NON_PRIME, DELIVERY_TYPE_HOME_DELIVERY, Invoice, InvoiceChange
from statecast.sales.v1.loyalty_notification_pb2 import LoyaltyNotification
from statecast.sales.v1.masked_line_pb2 import MaskedLine
from stream_processor.pipeline.pipeline import Pipeline
from testkit.stream_processor.changes import INVOICE_CHANGES, LOYALTY_OF_CHANGES, invoice, invoice_change
from testkit.stream_processor.micro_batches import PipelineOf
from testkit.stream_processor.one_batch import OneBatch

Routed = Callable[..., list[tuple[str, bytes]]]


@pytest.fixture
def shipped(shipped: PipelineOf) -> PipelineOf:
    """Gives shipped pipelines of invoices, with changes as their source."""
    return partial(shipped, source=INVOICE_CHANGES)


@pytest.fixture
def routed(batch: OneBatch) -> Routed:
    """The keys and values that the changes become."""

    def run(pipeline: Pipeline, *changes: InvoiceChange) -> list[tuple[str, bytes]]:
        lines = batch.lines(pipeline, *changes)
        assert lines.columns == ["topic", "key", "value", "headers"]
        passed_on = lines.where(lines.topic == pipeline.sink_topic).collect()
        return [(bytes(line.key).decode(), bytes(line.value)) for line in passed_on]

    return run


def test_a_selected_row_is_written_under_its_group(shipped: PipelineOf, routed: Routed) -> None:
    [(key, value)] = routed(shipped("home-delivery"), invoice_change(None, invoice()))

    delivery = HomeDelivery.FromString(value)
    assert key == "store-1"
    assert (delivery.invoice_number, delivery.address.city) == ("invoice-1", "Pune")
    assert (delivery.store_id, delivery.created_at) == ("store-1", invoice().created_at)


def test_rows_that_do_not_match_and_deletes_are_passed_over(shipped: PipelineOf, routed: Routed) -> None:
    taken, sent = invoice("taken", delivered=False), invoice("sent")

    records = routed(
        shipped("home-delivery"),
        invoice_change(None, taken, 1),
        invoice_change(taken, invoice("taken"), 2),
        invoice_change(sent, None, 3),
        invoice_change(sent, invoice("sent", delivered=False), 4),
        invoice_change(None, sent, 5, snapshot=True),
    )

    assert [HomeDelivery.FromString(value).invoice_number for _, value in records] == ["taken", "sent"]


def test_only_the_routes_operations_are_passed_on(shipped: PipelineOf, routed: Routed) -> None:
    other = invoice("other")
    other.customer_type = CUSTOMER_TYPE_NON_PRIME

    records = routed(
        shipped("loyalty-notifications", **LOYALTY_OF_CHANGES),
        invoice_change(None, invoice("new"), 1),
        invoice_change(invoice("new"), invoice("new", ["a", "b"]), 2),
        invoice_change(None, invoice("read", ["a", "b", "c"]), 3, snapshot=True),
        invoice_change(None, other, 4),
    )

    notifications = [LoyaltyNotification.FromString(value) for _, value in records]
    assert [(each.invoice_number, each.earned_points) for each in notifications] == [("new", 2), ("read", 7)]
    assert {key for key, _ in records} == {"1234567890"}


NUMBERS = [f"invoice-{number}" for number in range(5)]


@pytest.mark.parametrize(
    ("partition_by", "partitions"),
    [
        ("cardinality(lines) + 7", [(1 + 7) % 4] * 5),
        ("-cardinality(lines)", [3] * 5),
        ("invoice_number", [partition_of(number, 4) for number in NUMBERS]),
        ("nullif(invoice_number, invoice_number)", [None] * 5),
        ("nullif(1, 1)", [None] * 5),
    ],
)
def test_an_expression_chooses_the_partition(
    shipped: PipelineOf, batch: OneBatch, partition_by: str, partitions: list[int | None]
) -> None:
    sink = {"topic": "t", "message": "statecast.sales.v1.HomeDelivery", "partition_by": partition_by}

    lines = batch.written(
        shipped("home-delivery", sink=sink), *[invoice_change(None, invoice(each)) for each in NUMBERS]
    )

    placed = {HomeDelivery.FromString(bytes(line.value)).invoice_number: line.partition for line in lines}
    assert placed == dict(zip(NUMBERS, partitions, strict=True))


def test_an_element_chooses_the_partition(shipped: PipelineOf, batch: OneBatch) -> None:
    sink = {"topic": "t", "message": "statecast.sales.v1.MaskedLine", "partition_by": "element.item_code"}

    lines = batch.written(shipped("masked-lines", sink=sink), invoice_change(None, invoice(items=["a", "b"])))

    assert [line.partition for line in lines] == [partition_of(code, 4) for code in ("a", "b")]


def test_each_element_gives_a_record_without_what_is_personal(shipped: PipelineOf, routed: Routed) -> None:
    records = routed(shipped("masked-lines"), invoice_change(None, invoice(items=["a", "b"])))

    lines = [MaskedLine.FromString(value) for _, value in records]
    assert [(line.item_code, line.item_price_cents) for line in lines] == [("a", 250), ("b", 250)]
    assert {(line.customer_card_masked, line.city) for line in lines} == {("******7890", "Pune")}
    assert {line.delivery_type for line in lines} == {DELIVERY_TYPE_HOME_DELIVERY}
    assert not any(b"1234567890" in value or b"411001" in value for _, value in records)


def test_what_is_absent_stays_unset(shipped: PipelineOf, routed: Routed) -> None:
    [(_, value)] = routed(shipped("masked-lines"), invoice_change(None, invoice(delivered=False)))

    assert MaskedLine.FromString(value).city == ""


def test_a_number_that_its_field_cannot_hold_stays_unset(shipped: PipelineOf, routed: Routed) -> None:
    select = {"item_code": "element.item_code", "item_price_cents": f"element.item_price_cents * {2**63 - 1}"}

    [(_, value)] = routed(shipped("masked-lines", select=select), invoice_change(None, invoice()))

    assert MaskedLine.FromString(value) == MaskedLine(item_code="item-1")


def test_what_cannot_be_computed_of_a_row_stays_unset_beside_what_can(shipped: PipelineOf, routed: Routed) -> None:
    select = {
        "item_code": "element.item_code",
        "city": "repeat(repeat(currency, 9000), 9000)",
        "created_at": "timestamp_micros(9223372036854775807)",
    }

    [(_, value)] = routed(shipped("masked-lines", select=select), invoice_change(None, invoice()))

    assert MaskedLine.FromString(value).item_code == "item-1"
    assert not MaskedLine.FromString(value).HasField("created_at")
    assert MaskedLine.FromString(value).city == ""


def test_a_condition_that_cannot_be_computed_is_not_true(shipped: PipelineOf, routed: Routed) -> None:
    fails = "make_date(9999, 12, 31) < make_date(1, 1, 1) or repeat(repeat(currency, 9000), 9000) <> ''"

    assert routed(shipped("masked-lines", where=fails), invoice_change(None, invoice())) == []


def test_an_element_can_be_the_key(shipped: PipelineOf, routed: Routed) -> None:
    pipeline = shipped("masked-lines", group_by="lines.item_code")

    assert [key for key, _ in routed(pipeline, invoice_change(None, invoice(items=["a", "b"])))] == ["a", "b"]


def test_without_a_selection_the_row_is_passed_on_as_it_was_received(shipped: PipelineOf, routed: Routed) -> None:
    pipeline = shipped("home-delivery", select=None, sink={"topic": "sent"})

    [(_, value)] = routed(pipeline, invoice_change(None, invoice()))

    assert Invoice.FromString(value) == invoice()


def test_a_change_that_cannot_be_used_gives_nothing(shipped: PipelineOf, routed: Routed) -> None:
    homeless = invoice()
    homeless.store_id = ""

    assert routed(shipped("home-delivery"), InvoiceChange(), invoice_change(None, homeless)) == []
