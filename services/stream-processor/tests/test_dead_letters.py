"""Records that no pipeline, or not every pipeline, can use."""

from collections.abc import Callable

import pytest
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F  # noqa: N812  the name that every Spark program uses

from stream_processor.dead_letters import OFFSET, PARTITION, PIPELINES, REASON, TOPIC, dead_letters
from stream_processor.functions import Functions
from stream_processor.pipeline import Pipeline
from stream_processor.sink import HEADERS
from stream_processor.testing.changes import change, order

pytestmark = pytest.mark.spark


@pytest.fixture
def pipelines(shipped: Callable[..., Pipeline]) -> list[Pipeline]:
    return [shipped("orders-by-key"), shipped("orders-by-customer"), shipped("orders-by-item")]


def headers(letter: Row) -> dict[str, str]:
    return {header.key: bytes(header.value).decode() for header in letter.headers}


def test_what_nobody_can_use_is_one_letter_with_its_origin(
    pipelines: list[Pipeline], records: Callable[..., DataFrame], functions: Functions
) -> None:
    sound = change(None, order(), 1)

    [letter] = dead_letters(records(sound, b"\xff\xff"), pipelines, functions).collect()

    found = headers(letter)
    assert (bytes(letter.key), bytes(letter.value)) == (b"key", b"\xff\xff")
    assert (found[TOPIC], found[PARTITION], found[OFFSET]) == ("orders", "0", "1")
    assert found[PIPELINES] == "orders-by-key,orders-by-customer,orders-by-item"
    assert found[REASON].startswith("not a statecast.orders.v1.OrderChange")
    assert "\n" not in found[REASON]


def test_what_some_cannot_use_names_them_and_their_reasons(
    pipelines: list[Pipeline], records: Callable[..., DataFrame], functions: Functions
) -> None:
    [letter] = dead_letters(records(change(None, order(customer="", items=[""]), 1)), pipelines, functions).collect()

    assert headers(letter)[PIPELINES] == "orders-by-customer,orders-by-item"
    assert headers(letter)[REASON] == (
        "after.customer_id is empty, a key needs it\nafter.items.item_id is empty, a key needs it"
    )


def test_a_letter_keeps_its_null_value_and_its_own_headers(
    pipelines: list[Pipeline], records: Callable[..., DataFrame], functions: Functions, spark: SparkSession
) -> None:
    own = F.array(F.struct(F.lit("trace").alias("key"), F.lit(b"1").alias("value"))).cast(HEADERS)

    [letter] = dead_letters(records(None).withColumn("headers", own), pipelines, functions).collect()

    assert letter.value is None
    assert headers(letter)["trace"] == "1"
    assert headers(letter)[REASON] == "the value is null"
