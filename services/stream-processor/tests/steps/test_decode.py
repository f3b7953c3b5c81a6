"""Records decoded into changes, and the problems of a change."""

from collections.abc import Callable

import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name that every Spark program uses

from statecast.change.v1.change_pb2 import (
    OPERATION_CREATE,
    OPERATION_DELETE,
    OPERATION_SNAPSHOT,
    OPERATION_UNSPECIFIED,
    OPERATION_UPDATE,
)
from statecast.orders.v1.order_pb2 import OrderChange
from stream_processor.pipeline.pipeline import Pipeline
from stream_processor.steps.decode import TOMBSTONE, decode
from stream_processor.steps.flow import checked_changes
from stream_processor.steps.functions import Functions
from testkit.stream_processor.changes import change, order

pytestmark = pytest.mark.spark

NEWER_FIELD = b"\xa2\x06\x03new"
"""A field of number 100 that the contract does not know, with three bytes of text."""


@pytest.fixture
def pipeline(shipped: Callable[..., Pipeline]) -> Pipeline:
    return shipped("orders-by-key")


def test_a_change_is_a_row_and_nothing_else_is(
    functions: Functions, records: Callable[..., DataFrame], pipeline: Pipeline
) -> None:
    lines = decode(records(change(None, order(), 1), b"\xff"), pipeline, functions).orderBy("offset").collect()

    assert [line.change is not None for line in lines] == [True, False]
    assert lines[0].change.after.order_id == "order-1"
    assert lines[0].problem is None
    assert lines[1].problem.startswith("not a statecast.orders.v1.OrderChange: ")
    assert lines[1].payload is None


def test_the_payload_is_the_row_after_the_change(
    functions: Functions, records: Callable[..., DataFrame], pipeline: Pipeline
) -> None:
    created, deleted = change(None, order(), 1), change(order(), None, 2)

    lines = decode(records(created, deleted), pipeline, functions).orderBy("offset").collect()

    assert bytes(lines[0].payload) == created.after.SerializeToString(deterministic=True)
    assert lines[1].payload is None


def test_the_payload_holds_what_only_a_newer_producer_knows(
    functions: Functions, records: Callable[..., DataFrame], pipeline: Pipeline
) -> None:
    newer = change(None, order(), 1)
    newer.after.MergeFromString(NEWER_FIELD)

    [line] = decode(records(OrderChange.FromString(newer.SerializeToString())), pipeline, functions).collect()

    assert bytes(line.payload).endswith(NEWER_FIELD)
    assert line.problem is None


def test_an_enum_number_that_only_a_newer_producer_knows_is_a_problem(
    functions: Functions, records: Callable[..., DataFrame], pipeline: Pipeline
) -> None:
    newer = change(None, order(), 1)
    newer.after.MergeFromString(b"\x18\x63")

    [line] = decode(records(newer), pipeline, functions).collect()

    assert line.problem == (
        "not a statecast.orders.v1.OrderChange: statecast.orders.v1.Order.status: "
        "statecast.orders.v1.OrderStatus has no value 99"
    )


@pytest.mark.parametrize("encoding", ["protobuf", "debezium-json"])
def test_a_tombstone_is_passed_over_and_a_value_that_is_missing_is_a_problem(
    functions: Functions, records: Callable[..., DataFrame], shipped: Callable[..., Pipeline], encoding: str
) -> None:
    message = "statecast.orders.v1.OrderChange"
    pipeline = shipped("orders-by-key", source={"topic": "orders", "message": message, "format": encoding})
    keyless = records(None).withColumn("key", F.lit(None).cast("binary"))

    decoded = decode(records(None).union(keyless), pipeline, functions)
    tombstone, missing = checked_changes(decoded, pipeline).orderBy(F.col("key").isNull()).collect()

    assert (tombstone.change, tombstone.problem, tombstone.passed_over) == (None, None, TOMBSTONE)
    assert (missing.change, missing.problem, missing.passed_over) == (None, "the value is null", None)


ROW = order()


@pytest.fixture
def problems(
    functions: Functions, records: Callable[..., DataFrame], shipped: Callable[..., Pipeline]
) -> Callable[..., list[str | None]]:
    def check(*changes: OrderChange | bytes) -> list[str | None]:
        pipeline = shipped("orders-by-key")
        checked = checked_changes(decode(records(*changes), pipeline, functions), pipeline).orderBy("offset")
        return [line.problem for line in checked.collect()]

    return check


def test_sound_changes_have_no_problem(problems: Callable[..., list[str | None]]) -> None:
    snapshot = OrderChange(operation=OPERATION_SNAPSHOT, source=change(None, ROW, 1).source, after=ROW)

    bare = OrderChange(operation=OPERATION_UPDATE, source=snapshot.source, after=ROW)

    assert problems(change(None, ROW, 1), change(ROW, ROW, 2), change(ROW, None, 3), snapshot, bare) == [None] * 5


def test_an_operation_has_exactly_its_rows(problems: Callable[..., list[str | None]]) -> None:
    source = change(None, ROW, 1).source

    error_texts = problems(
        OrderChange(source=source, operation=OPERATION_UNSPECIFIED, after=ROW),
        OrderChange(source=source, operation=OPERATION_CREATE),
        OrderChange(source=source, operation=OPERATION_CREATE, before=ROW, after=ROW),
        OrderChange(source=source, operation=OPERATION_DELETE, before=ROW, after=ROW),
        OrderChange(source=source, operation=OPERATION_DELETE),
    )

    assert error_texts == [
        "operation is not set",
        "after is not set, but operation is OPERATION_CREATE",
        "before is set, but operation is OPERATION_CREATE",
        "after is set, but operation is OPERATION_DELETE",
        "before is not set, but operation is OPERATION_DELETE",
    ]


def test_the_source_must_say_where_the_change_stands(problems: Callable[..., list[str | None]]) -> None:
    assert problems(OrderChange(operation=OPERATION_CREATE, after=ROW)) == ["source is not set"]


def test_the_first_problem_is_kept(problems: Callable[..., list[str | None]]) -> None:
    [problem] = problems(b"\xff")

    assert problem is not None
    assert problem.startswith("not a statecast.orders.v1.OrderChange: ")
