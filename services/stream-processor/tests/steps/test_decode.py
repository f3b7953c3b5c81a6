"""Records decoded into changes, and the problems of a change."""

import pytest

from statecast.change.v1.change_pb2 import (
    OPERATION_CREATE,
    OPERATION_DELETE,
    OPERATION_SNAPSHOT,
    OPERATION_UNSPECIFIED,
    OPERATION_UPDATE,
)
from statecast.orders.v1.order_pb2 import OrderChange
from stream_processor.steps.decode import TOMBSTONE
from testkit.stream_processor.changes import change, order
from testkit.stream_processor.micro_batches import PipelineOf
from testkit.stream_processor.one_batch import OneBatch

NEWER_FIELD = b"\xa2\x06\x03new"
"""A field of number 100 that the contract does not know, with three bytes of text."""


def test_a_change_is_a_row_with_all_that_its_producer_knows(shipped: PipelineOf, batch: OneBatch) -> None:
    created, deleted = change(None, order(), 1), change(order(), None, 2)
    newer, unknown = change(None, order(), 3), change(None, order(), 4)
    newer.after.MergeFromString(NEWER_FIELD)
    unknown.after.MergeFromString(b"\x18\x63")

    lines = batch.decoded(shipped("orders-by-key"), created, deleted, newer, unknown, b"\xff")

    assert lines[0].change.after.order_id == "order-1"
    assert [line.payload and bytes(line.payload) for line in lines] == [
        created.after.SerializeToString(deterministic=True),
        None,
        order().SerializeToString(deterministic=True) + NEWER_FIELD,
        None,
        None,
    ]
    assert [line.problem for line in lines[:4]] == [
        None,
        None,
        None,
        "not a statecast.orders.v1.OrderChange: statecast.orders.v1.Order.status: "
        "statecast.orders.v1.OrderStatus has no value 99",
    ]
    assert lines[4].change is None
    assert lines[4].problem.startswith("not a statecast.orders.v1.OrderChange: ")


@pytest.mark.parametrize("encoding", ["protobuf", "debezium-json"])
def test_a_tombstone_is_passed_over_and_a_value_that_is_missing_is_a_problem(
    shipped: PipelineOf, batch: OneBatch, encoding: str
) -> None:
    message = "statecast.orders.v1.OrderChange"
    pipeline = shipped("orders-by-key", source={"topic": "orders", "message": message, "format": encoding})

    tombstone, missing = batch.checked(pipeline, None, (None, None))

    assert (tombstone.change, tombstone.problem, tombstone.passed_over) == (None, None, TOMBSTONE)
    assert (missing.change, missing.problem, missing.passed_over) == (None, "the value is null", None)


ROW = order()


def test_an_operation_has_exactly_its_rows_and_a_place(shipped: PipelineOf, batch: OneBatch) -> None:
    source = change(None, ROW, 1).source

    assert batch.problems(
        shipped("orders-by-key"),
        change(None, ROW, 1),
        change(ROW, ROW, 2),
        change(ROW, None, 3),
        OrderChange(source=source, operation=OPERATION_SNAPSHOT, after=ROW),
        OrderChange(source=source, operation=OPERATION_UPDATE, after=ROW),
        OrderChange(source=source, operation=OPERATION_UNSPECIFIED, after=ROW),
        OrderChange(source=source, operation=OPERATION_CREATE),
        OrderChange(source=source, operation=OPERATION_CREATE, before=ROW, after=ROW),
        OrderChange(source=source, operation=OPERATION_DELETE, before=ROW, after=ROW),
        OrderChange(source=source, operation=OPERATION_DELETE),
        OrderChange(operation=OPERATION_CREATE, after=ROW),
    ) == [
        *[None] * 5,
        "operation is not set",
        "after is not set, but operation is OPERATION_CREATE",
        "before is set, but operation is OPERATION_CREATE",
        "after is set, but operation is OPERATION_DELETE",
        "before is not set, but operation is OPERATION_DELETE",
        "source is not set",
    ]


def test_the_first_problem_is_kept(shipped: PipelineOf, batch: OneBatch) -> None:
    [problem] = batch.problems(shipped("orders-by-key"), b"\xff")

    assert problem is not None
    assert problem.startswith("not a statecast.orders.v1.OrderChange: ")
