"""Records that a pipeline cannot use, through each shape."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

import pytest
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  the name that every Spark program uses

from stream_processor.pipeline.pipeline import Pipeline
from stream_processor.steps.dead_letters import (
    HEADERS,
    HEADERS_BYTES,
    OFFSET,
    PARTITION,
    PIPELINES,
    REASON,
    TOPIC,
    TRUNCATED,
)
from stream_processor.steps.flow import written_records
from stream_processor.steps.functions import Functions
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
from testkit.stream_processor.micro_batches import MicroBatches
from testkit.topics import Record

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

Making: TypeAlias = Callable[..., Pipeline]
Reading: TypeAlias = Callable[..., DataFrame]
Setting: TypeAlias = Callable[[DataFrame, Pipeline], list[Record]]

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


def traced() -> Column:
    """The headers of a source record that has one already."""
    return F.array(F.struct(F.lit("trace").alias("key"), F.lit(b"1").alias("value"))).cast(HEADERS)


@pytest.mark.parametrize("name", SHAPES)
def test_a_record_that_is_no_change_is_one_letter_with_its_place(
    shipped: Making, records: Reading, functions: Functions, name: str
) -> None:
    pipeline = shipped(name, **SHAPES[name])

    [line] = written_records([records(b"\xff\xff")], pipeline, 4, 1, functions).collect()

    assert line.topic == f"{pipeline.source_topic}.dead-letter"
    assert line.asDict().get("partition") is None
    assert (bytes(line.key), bytes(line.value)) == (b"key", b"\xff\xff")
    headers = {each.key: bytes(each.value).decode() for each in line.headers}
    assert headers.pop(REASON).startswith(f"not a {pipeline.change.full_name}")
    assert headers == {TOPIC: "orders", PARTITION: "0", OFFSET: "0", PIPELINES: name}


@pytest.mark.parametrize(("name", "state_rows"), [("orders-by-key", 0), ("us-share-holders", 3)])
def test_letters_come_again_with_a_batch_that_runs_again(
    tmp_path: Path, spark: SparkSession, shipped: Making, functions: Functions, name: str, state_rows: int
) -> None:
    played = MicroBatches(tmp_path, shipped(name, **SHAPES[name]), spark, functions)
    played.add([b"\xff", b"\xfe"])
    played.run(crash_at=0)
    played.run()
    played.add([b"\xfd"])
    played.run()

    assert [each.value for each in played.letters if each.value == b"\xfd"] == [b"\xfd"]
    assert sorted(text(each, OFFSET) for each in played.letters) == ["0", "0", "1", "1", "2"]
    assert (played.outcomes["set_aside"], played.state_rows, played.written) == (3, state_rows, [])


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("orders-by-key", None),
        ("orders-by-customer", "after.customer_id is empty, a key needs it"),
        ("orders-by-item", "after.items.item_id is empty, a key needs it"),
    ],
)
def test_each_pipeline_writes_the_letters_of_records_that_it_cannot_use(
    shipped: Making, records: Reading, letters: Setting, name: str, problem: str | None
) -> None:
    keyless = records(change(None, order(customer="", items=[""]), 1))

    set_aside = letters(keyless, shipped(name))

    assert [(text(each, PIPELINES), text(each, REASON)) for each in set_aside] == ([(name, problem)] if problem else [])


def test_a_letter_keeps_its_null_value_and_its_own_headers(shipped: Making, records: Reading, letters: Setting) -> None:
    keyless = records(None).withColumns({"key": F.lit(None).cast("binary"), "headers": traced()})

    [letter] = letters(keyless, shipped("orders-by-key"))

    assert letter.value is None
    assert text(letter, "trace") == "1"
    assert text(letter, REASON) == "the value is null"


def test_a_tombstone_is_no_letter(shipped: Making, records: Reading, letters: Setting) -> None:
    assert letters(records(None), shipped("orders-by-key")) == []


def test_a_record_with_a_key_that_the_pipeline_does_not_take_is_no_letter(
    shipped: Making, records: Reading, letters: Setting
) -> None:
    assert letters(records(b"\xff"), shipped("orders-by-key", where_key="other")) == []


def test_a_letter_that_its_topic_would_not_take_is_cut_and_says_so(
    shipped: Making, records: Reading, letters: Setting
) -> None:
    poison = records(b"\xff" * 5_000_000, b"\xff" * 100).withColumn("headers", traced())

    cut, whole = letters(poison, replace(shipped("orders-by-key"), max_dead_letter_bytes=1_000_000))

    assert len(cut.value or b"") == 1_000_000 - HEADERS_BYTES - len(b"key") - len("trace") * 4 - len(b"1") - 16
    assert text(cut, TRUNCATED) == "5000000"
    assert (cut.key, text(cut, "trace"), text(cut, OFFSET)) == (b"key", "1", "0")
    assert len(whole.value or b"") == 100
    assert TRUNCATED not in whole.headers


def test_a_key_that_leaves_no_room_is_dropped(shipped: Making, records: Reading, letters: Setting) -> None:
    poison = records(b"\xff" * 50).withColumns({"key": F.lit(b"k" * 600_000), "headers": traced()})

    [letter] = letters(poison, replace(shipped("orders-by-key"), max_dead_letter_bytes=600_000))

    assert letter.key == b""
    assert letter.value == b"\xff" * 50
    assert text(letter, TRUNCATED) == "50"
    assert "trace" not in letter.headers


def test_a_row_that_the_sinks_topic_would_not_take_is_a_letter(
    shipped: Making, records: Reading, letters: Setting
) -> None:
    large = order()
    large.tracking_number = "x" * 10_000
    changes = records(change(None, large, 1), change(None, order(), 2))

    [letter] = letters(changes, replace(shipped("orders-by-key"), max_payload_bytes=5_904))

    reason = f"the row has {large.ByteSize()} bytes, orders-by-key takes 5904 (max.message.bytes)"
    assert text(letter, REASON) == reason
    assert letters(changes, replace(shipped("orders-by-key"), max_payload_bytes=20_000)) == []


@pytest.mark.parametrize(
    ("name", "offsets"),
    [("orders-by-key", ["3"]), ("orders-by-customer", ["1", "3"]), ("orders-by-item", ["2", "3"])],
)
def test_a_key_that_no_record_should_have_is_a_letter(
    shipped: Making, records: Reading, letters: Setting, name: str, offsets: list[str]
) -> None:
    longest, longer = "ä" * MAX_PART, "x" * (MAX_PART + 1)
    changes = [
        change(None, order(longest, customer=longest, items=[longest]), 1),
        change(None, order(customer=longer), 2),
        change(None, order(items=["a", longer]), 3),
        change(None, order(longer), 4),
    ]

    long_keys = letters(records(*changes), shipped(name))

    assert [text(each, OFFSET) for each in long_keys] == offsets
    assert all(text(each, REASON).endswith("has more than 1,024 characters, a key takes no more") for each in long_keys)


def test_a_source_that_would_fill_each_record_is_a_letter(shipped: Making, records: Reading, letters: Setting) -> None:
    wordy = change(None, order(), 1)
    wordy.source.table = "x" * 300

    [letter] = letters(records(wordy), shipped("orders-by-key"))

    assert text(letter, REASON) == "source has more than 256 characters"


def test_a_selected_row_that_its_topic_would_not_take_is_a_letter_and_no_record(
    shipped: Making, records: Reading, letters: Setting, functions: Functions
) -> None:
    sink = {"topic": "orders-by-key", "message": "statecast.orders.v1.Order"}
    pipeline = shipped("orders-by-key", sink=sink, select={"order_id": "order_id", "currency": "repeat(currency, 100)"})
    sized = replace(pipeline, max_payload_bytes=350)
    large = order("large")
    large.currency = "EURO"
    changes = records(change(None, order(), 1), change(None, large, 2))

    [letter] = letters(changes, sized)
    keys = {bytes(each.key) for each in written_records([changes], sized, 4, 1, functions).collect()}

    assert text(letter, OFFSET) == "1"
    assert text(letter, REASON) == "what select makes has 410 bytes, orders-by-key takes 350 (max.message.bytes)"
    assert letter.value == change(None, large, 2).SerializeToString()
    assert keys == {b"key", b"order-1"}


def test_a_message_of_an_element_that_its_topic_would_not_take_is_a_letter_beside_the_others(
    shipped: Making, records: Reading, letters: Setting, functions: Functions
) -> None:
    select = {"invoice_number": "invoice_number", "item_code": "repeat(element.item_code, 100)"}
    sized = replace(shipped("masked-lines", source=INVOICE_CHANGES, select=select), max_payload_bytes=350)
    changes = [invoice_change(None, invoice(items=items)) for items in (["a", "b"], ["c", "long"], [])]
    lines = records(*[each.SerializeToString() for each in changes])

    [letter] = letters(lines, sized)
    routed = written_records([lines], sized, 4, 1, functions).where(F.col("topic") == sized.sink_topic).collect()

    assert text(letter, OFFSET) == "1"
    assert text(letter, REASON).startswith("what select makes has 4")
    assert letter.value == changes[1].SerializeToString()
    assert len(routed) == 3
