"""Changes that contradict themselves."""

from collections.abc import Callable

import pytest
from pyspark.sql import DataFrame

from statecast.change.v1.change_pb2 import (
    OPERATION_CREATE,
    OPERATION_DELETE,
    OPERATION_SNAPSHOT,
    OPERATION_UNSPECIFIED,
    OPERATION_UPDATE,
)
from statecast.orders.v1.order_pb2 import OrderChange
from stream_processor.definition.pipeline import Pipeline
from stream_processor.steps.change_checks import check_change
from stream_processor.steps.decode import decode
from stream_processor.steps.functions import Functions
from stream_processor.testing.changes import change, order

ROW = order()

pytestmark = pytest.mark.spark


@pytest.fixture
def problems(
    functions: Functions, records: Callable[..., DataFrame], shipped: Callable[..., Pipeline]
) -> Callable[..., list[str | None]]:
    def check(*changes: OrderChange | bytes) -> list[str | None]:
        checked = check_change(decode(records(*changes), shipped("orders-by-key"), functions)).orderBy("offset")
        return [line.problem for line in checked.collect()]

    return check


def test_sound_changes_have_no_problem(problems: Callable[..., list[str | None]]) -> None:
    snapshot = OrderChange(operation=OPERATION_SNAPSHOT, source=change(None, ROW, 1).source, after=ROW)

    bare = OrderChange(operation=OPERATION_UPDATE, source=snapshot.source, after=ROW)

    assert problems(change(None, ROW, 1), change(ROW, ROW, 2), change(ROW, None, 3), snapshot, bare) == [None] * 5


def test_an_operation_has_exactly_its_rows(problems: Callable[..., list[str | None]]) -> None:
    source = change(None, ROW, 1).source

    found = problems(
        OrderChange(source=source, operation=OPERATION_UNSPECIFIED, after=ROW),
        OrderChange(source=source, operation=OPERATION_CREATE),
        OrderChange(source=source, operation=OPERATION_CREATE, before=ROW, after=ROW),
        OrderChange(source=source, operation=OPERATION_DELETE, before=ROW, after=ROW),
        OrderChange(source=source, operation=OPERATION_DELETE),
    )

    assert found == [
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
