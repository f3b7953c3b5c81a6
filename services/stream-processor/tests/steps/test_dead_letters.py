"""Records that a pipeline cannot use, through each shape."""

from dataclasses import replace

import pytest

from stream_processor.steps.dead_letters import (
    HEADERS_BYTES,
    OFFSET,
    PARTITION,
    PIPELINES,
    REASON,
    TOPIC,
    TRUNCATED,
)
from stream_processor.steps.keys import MAX_PART
from testkit.stream_processor.changes import (
    INVOICE_CHANGES,
    INVOICE_ROWS,
    LOYALTY_OF_CHANGES,
    POSITION_CHANGES,
    change,
    invoice,
    invoice_change,
    order,
)
from testkit.stream_processor.micro_batches import BatchesOf, PipelineOf
from testkit.stream_processor.one_batch import OneBatch
from testkit.topics import Record

pytestmark = pytest.mark.timeout(600)

SHAPES: dict[str, dict[str, object]] = {
    "orders-by-key": {},
    "orders-by-customer": {},
    "us-share-holders": {"source": POSITION_CHANGES},
    "rewards-by-customer": {"source": INVOICE_ROWS},
    "hourly-sales-by-store": {"source": INVOICE_ROWS},
    "home-delivery": {"source": INVOICE_CHANGES},
    "masked-lines": {"source": INVOICE_CHANGES},
    "loyalty-notifications": LOYALTY_OF_CHANGES,
}


def text(letter: Record, header: str) -> str:
    return letter.headers[header].decode()


@pytest.mark.parametrize("name", SHAPES)
def test_a_record_that_is_no_change_is_one_letter_with_its_place(
    shipped: PipelineOf, batch: OneBatch, name: str
) -> None:
    pipeline = shipped(name, **SHAPES[name])

    [line] = batch.lines(pipeline, b"\xff\xff").collect()

    assert line.topic == f"{pipeline.source_topic}.dead-letter"
    assert line.asDict().get("partition") is None
    assert (bytes(line.key), bytes(line.value)) == (b"key", b"\xff\xff")
    headers = {each.key: bytes(each.value).decode() for each in line.headers}
    assert headers.pop(REASON).startswith(f"not a {pipeline.change.full_name}")
    assert headers == {TOPIC: "orders", PARTITION: "0", OFFSET: "0", PIPELINES: name}


@pytest.mark.parametrize("name", ["orders-by-key", pytest.param("us-share-holders", marks=pytest.mark.long)])
def test_letters_come_again_with_a_batch_that_runs_again(shipped: PipelineOf, batches_of: BatchesOf, name: str) -> None:
    played = batches_of(shipped(name, **SHAPES[name]))
    played.add([b"\xff", b"\xfe"])
    played.run(crash_at=0)
    played.run()
    played.add([b"\xfd"])
    played.run()

    assert [each.value for each in played.letters if each.value == b"\xfd"] == [b"\xfd"]
    assert sorted(text(each, OFFSET) for each in played.letters) == ["0", "0", "1", "1", "2"]
    assert (played.outcomes["set_aside"], played.state_rows, played.written) == (3, 0, [])


NO_CUSTOMER = "after.customer_id is empty, a key needs it"
NO_ITEM = "after.items.item_id is empty, a key needs it"
WORDY = "source has more than 256 characters"


def too_long(path: str) -> str:
    return f"after.{path} has more than 1,024 characters, a key takes no more"


OF_PIPELINES = {
    "orders-by-key": {"4": too_long("order_id"), "5": WORDY, "6": "the value is null"},
    "orders-by-customer": {
        "0": NO_CUSTOMER,
        "2": too_long("customer_id"),
        "4": too_long("order_id"),
        "5": WORDY,
        "6": "the value is null",
    },
    "orders-by-item": {
        "0": NO_ITEM,
        "3": too_long("items.item_id"),
        "4": too_long("order_id"),
        "5": WORDY,
        "6": "the value is null",
    },
}
"""The reasons of letters by their offsets, of the pipelines that cannot use the records."""


@pytest.mark.parametrize("name", OF_PIPELINES)
def test_each_pipeline_writes_the_letters_of_records_that_it_cannot_use(
    shipped: PipelineOf, batch: OneBatch, name: str
) -> None:
    longest, longer = "ä" * MAX_PART, "x" * (MAX_PART + 1)
    wordy = change(None, order(), 6)
    wordy.source.table = "x" * 300
    changes = [
        change(None, order(customer="", items=[""]), 1),
        change(None, order(longest, customer=longest, items=[longest]), 2),
        change(None, order(customer=longer), 3),
        change(None, order(items=["a", longer]), 4),
        change(None, order(longer), 5),
        wordy,
    ]
    tombstone = None

    set_aside = batch.letters(shipped(name), *changes, (None, None, {"trace": b"1"}), tombstone)

    assert {text(each, OFFSET): text(each, REASON) for each in set_aside} == OF_PIPELINES[name]
    assert {text(each, PIPELINES) for each in set_aside} == {name}
    assert (set_aside[-1].value, text(set_aside[-1], "trace")) == (None, "1")


def test_a_record_with_a_key_that_the_pipeline_does_not_take_is_no_letter(shipped: PipelineOf, batch: OneBatch) -> None:
    assert batch.letters(shipped("orders-by-key", where_key="other"), b"\xff") == []


def test_a_letter_that_its_topic_would_not_take_is_cut_and_says_so(shipped: PipelineOf, batch: OneBatch) -> None:
    poison = [(b"key", b"\xff" * size, {"trace": b"1"}) for size in (5_000_000, 100)]

    cut, whole = batch.letters(replace(shipped("orders-by-key"), max_dead_letter_bytes=1_000_000), *poison)

    assert len(cut.value or b"") == 1_000_000 - HEADERS_BYTES - len(b"key") - len("trace") * 4 - len(b"1") - 16
    assert text(cut, TRUNCATED) == "5000000"
    assert (cut.key, text(cut, "trace"), text(cut, OFFSET)) == (b"key", "1", "0")
    assert len(whole.value or b"") == 100
    assert TRUNCATED not in whole.headers


def test_a_key_that_leaves_no_room_is_dropped(shipped: PipelineOf, batch: OneBatch) -> None:
    pipeline = replace(shipped("orders-by-key"), max_dead_letter_bytes=600_000)

    [letter] = batch.letters(pipeline, (b"k" * 600_000, b"\xff" * 50, {"trace": b"1"}))

    assert letter.key == b""
    assert letter.value == b"\xff" * 50
    assert text(letter, TRUNCATED) == "50"
    assert "trace" not in letter.headers


def test_a_row_that_the_sinks_topic_would_not_take_is_a_letter(shipped: PipelineOf, batch: OneBatch) -> None:
    large = order()
    large.tracking_number = "x" * 10_000
    changes = [change(None, large, 1), change(None, order(), 2)]

    [letter] = batch.letters(replace(shipped("orders-by-key"), max_payload_bytes=5_904), *changes)

    reason = f"the row has {large.ByteSize()} bytes, orders-by-key takes 5904 (max.message.bytes)"
    assert text(letter, REASON) == reason
    assert batch.letters(replace(shipped("orders-by-key"), max_payload_bytes=20_000), *changes) == []


def test_a_selected_row_that_its_topic_would_not_take_is_a_letter_and_no_record(
    shipped: PipelineOf, batch: OneBatch
) -> None:
    sink = {"topic": "orders-by-key", "message": "statecast.orders.v1.Order"}
    pipeline = shipped("orders-by-key", sink=sink, select={"order_id": "order_id", "currency": "repeat(currency, 100)"})
    sized = replace(pipeline, max_payload_bytes=350)
    large = order("large")
    large.currency = "EURO"
    changes = [change(None, order(), 1), change(None, large, 2)]

    [letter] = batch.letters(sized, *changes)

    assert text(letter, OFFSET) == "1"
    assert text(letter, REASON) == "what select makes has 410 bytes, orders-by-key takes 350 (max.message.bytes)"
    assert letter.value == changes[1].SerializeToString()
    assert [bytes(each.key) for each in batch.written(sized, *changes)] == [b"order-1"]


def test_a_message_of_an_element_that_its_topic_would_not_take_is_a_letter_beside_the_others(
    shipped: PipelineOf, batch: OneBatch
) -> None:
    select = {"invoice_number": "invoice_number", "item_code": "repeat(element.item_code, 100)"}
    sized = replace(shipped("masked-lines", source=INVOICE_CHANGES, select=select), max_payload_bytes=350)
    changes = [invoice_change(None, invoice(items=items)) for items in (["a", "b"], ["c", "long"], [])]

    [letter] = batch.letters(sized, *changes)

    assert text(letter, OFFSET) == "1"
    assert text(letter, REASON).startswith("what select makes has 4")
    assert letter.value == changes[1].SerializeToString()
    assert len(batch.written(sized, *changes)) == 3
