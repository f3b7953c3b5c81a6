"""Records that no pipeline, or not every pipeline, can use."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F  # noqa: N812  the name that every Spark program uses

from stream_processor.definition.pipeline import Pipeline
from stream_processor.steps.dead_letters import (
    HEADERS_BYTES,
    OFFSET,
    PARTITION,
    PIPELINES,
    REASON,
    TOPIC,
    TRUNCATED,
    dead_letters,
)
from stream_processor.steps.flow import written_records
from stream_processor.steps.functions import Functions
from stream_processor.steps.keyed_topic import HEADERS
from stream_processor.steps.record_keys import MAX_PART
from testkit.stream_processor.changes import change, invoice, invoice_change, order

pytestmark = pytest.mark.spark


@pytest.fixture
def pipelines(shipped: Callable[..., Pipeline]) -> list[Pipeline]:
    return [shipped("orders-by-key"), shipped("orders-by-customer"), shipped("orders-by-item")]


def headers(letter: Row) -> dict[str, str]:
    return {header.key: bytes(header.value).decode() for header in letter.headers}


def limited(pipelines: list[Pipeline], largest_letter: int) -> list[Pipeline]:
    """The pipelines, with a limit in bytes for the records of their dead-letter topic."""
    return [replace(each, max_dead_letter_bytes=largest_letter) for each in pipelines]


def traced() -> Column:
    """The headers of a source record that has one already."""
    return F.array(F.struct(F.lit("trace").alias("key"), F.lit(b"1").alias("value"))).cast(HEADERS)


def test_what_nobody_can_use_is_one_letter_with_its_origin(
    pipelines: list[Pipeline], records: Callable[..., DataFrame], functions: Functions
) -> None:
    sound = change(None, order(), 1)

    [letter] = dead_letters(records(sound, b"\xff\xff"), pipelines, functions).collect()

    letter_headers = headers(letter)
    assert (bytes(letter.key), bytes(letter.value)) == (b"key", b"\xff\xff")
    assert (letter_headers[TOPIC], letter_headers[PARTITION], letter_headers[OFFSET]) == ("orders", "0", "1")
    assert letter_headers[PIPELINES] == "orders-by-key,orders-by-customer,orders-by-item"
    assert letter_headers[REASON].startswith("not a statecast.orders.v1.OrderChange")
    assert "\n" not in letter_headers[REASON]


def test_what_some_cannot_use_names_them_and_their_reasons(
    pipelines: list[Pipeline], records: Callable[..., DataFrame], functions: Functions
) -> None:
    [letter] = dead_letters(records(change(None, order(customer="", items=[""]), 1)), pipelines, functions).collect()

    assert headers(letter)[PIPELINES] == "orders-by-customer,orders-by-item"
    assert headers(letter)[REASON] == (
        "after.customer_id is empty, a key needs it\nafter.items.item_id is empty, a key needs it"
    )


def test_a_letter_keeps_its_null_value_and_its_own_headers(
    pipelines: list[Pipeline], records: Callable[..., DataFrame], functions: Functions
) -> None:
    keyless = records(None).withColumns({"key": F.lit(None).cast("binary"), "headers": traced()})

    [letter] = dead_letters(keyless, pipelines, functions).collect()

    assert letter.value is None
    assert headers(letter)["trace"] == "1"
    assert headers(letter)[REASON] == "the value is null"


def test_a_tombstone_is_no_letter(
    pipelines: list[Pipeline], records: Callable[..., DataFrame], functions: Functions
) -> None:
    assert dead_letters(records(None), pipelines, functions).collect() == []


def test_a_letter_that_its_topic_would_not_take_is_cut_and_says_so(
    pipelines: list[Pipeline], records: Callable[..., DataFrame], functions: Functions
) -> None:
    poison = records(b"\xff" * 5_000_000, b"\xff" * 100).withColumn("headers", traced())

    cut, whole = dead_letters(poison, limited(pipelines, 1_000_000), functions).collect()

    assert len(cut.value) == 1_000_000 - HEADERS_BYTES - len(b"key") - len("trace") * 4 - len(b"1") - 16
    assert headers(cut)[TRUNCATED] == "5000000"
    assert (bytes(cut.key), headers(cut)["trace"], headers(cut)[OFFSET]) == (b"key", "1", "0")
    assert len(whole.value) == 100
    assert TRUNCATED not in headers(whole)


def test_a_key_that_leaves_no_room_is_dropped(
    pipelines: list[Pipeline], records: Callable[..., DataFrame], functions: Functions
) -> None:
    poison = records(b"\xff" * 50).withColumns({"key": F.lit(b"k" * 600_000), "headers": traced()})

    [letter] = dead_letters(poison, limited(pipelines, 600_000), functions).collect()

    assert letter.key is None
    assert bytes(letter.value) == b"\xff" * 50
    assert headers(letter)[TRUNCATED] == "50"
    assert "trace" not in headers(letter)


def test_a_row_that_the_sinks_topic_would_not_take_is_a_letter(
    pipelines: list[Pipeline], records: Callable[..., DataFrame], functions: Functions
) -> None:
    sized = [replace(each, max_payload_bytes=size) for each, size in zip(pipelines, (5_904, 20_000, None), strict=True)]
    large = order()
    large.tracking_number = "x" * 10_000

    [letter] = dead_letters(records(change(None, large, 1), change(None, order(), 2)), sized, functions).collect()

    assert headers(letter)[PIPELINES] == "orders-by-key"
    assert (
        headers(letter)[REASON] == f"the row has {large.ByteSize()} bytes, orders-by-key takes 5904 (max.message.bytes)"
    )


def test_a_key_that_no_record_should_have_is_a_letter(
    pipelines: list[Pipeline], records: Callable[..., DataFrame], functions: Functions
) -> None:
    longest, longer = "ä" * MAX_PART, "x" * (MAX_PART + 1)
    changes = [
        change(None, order(longest, customer=longest, items=[longest]), 1),
        change(None, order(customer=longer), 2),
        change(None, order(items=["a", longer]), 3),
        change(None, order(longer), 4),
    ]

    letters = dead_letters(records(*changes), pipelines, functions).orderBy("offset").collect()

    assert [headers(each)[PIPELINES] for each in letters] == [
        "orders-by-customer",
        "orders-by-item",
        "orders-by-key,orders-by-customer,orders-by-item",
    ]
    assert headers(letters[0])[REASON] == "after.customer_id has more than 1,024 characters, a key takes no more"


def test_a_source_that_would_fill_each_record_is_a_letter(
    pipelines: list[Pipeline], records: Callable[..., DataFrame], functions: Functions
) -> None:
    wordy = change(None, order(), 1)
    wordy.source.table = "x" * 300

    [letter] = dead_letters(records(wordy), pipelines, functions).collect()

    assert headers(letter)[REASON] == "source has more than 256 characters"


def test_a_selected_row_that_its_topic_would_not_take_is_a_letter_and_no_record(
    shipped: Callable[..., Pipeline], records: Callable[..., DataFrame], functions: Functions
) -> None:
    sink = {"topic": "orders-by-key", "message": "statecast.orders.v1.Order"}
    pipeline = shipped("orders-by-key", sink=sink, select={"order_id": "order_id", "currency": "repeat(currency, 100)"})
    sized = replace(pipeline, max_payload_bytes=350)
    large = order("large")
    large.currency = "EURO"
    changes = records(change(None, order(), 1), change(None, large, 2))

    [letter] = dead_letters(changes, [sized], functions).collect()
    [record] = written_records([changes], sized, 4, 1, functions).collect()

    assert headers(letter)[OFFSET] == "1"
    assert headers(letter)[REASON] == "what select makes has 410 bytes, orders-by-key takes 350 (max.message.bytes)"
    assert bytes(record.key) == b"order-1"


def test_of_exploded_elements_the_largest_decides(
    shipped: Callable[..., Pipeline], records: Callable[..., DataFrame], functions: Functions
) -> None:
    select = {"invoice_number": "invoice_number", "item_code": "repeat(element.item_code, 100)"}
    sized = replace(shipped("masked-lines", select=select), max_payload_bytes=350)
    changes = [invoice_change(None, invoice(items=items)) for items in (["a", "b"], ["c", "long"], [])]
    lines = records(*[each.SerializeToString() for each in changes])

    [letter] = dead_letters(lines, [sized], functions).collect()
    routed = written_records([lines], sized, 4, 1, functions).collect()

    assert headers(letter)[OFFSET] == "1"
    assert headers(letter)[REASON].startswith("what select makes has 4")
    assert len(routed) == 3
