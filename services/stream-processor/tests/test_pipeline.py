"""A pipeline checked against the contract."""

from collections.abc import Callable

import pytest

from stream_processor.errors import PipelineFileError
from stream_processor.pipeline import Pipeline

MESSAGE = "statecast.orders.v1.OrderChange"


def test_latest_has_a_group_alone(shipped: Callable[..., Pipeline]) -> None:
    found = shipped("orders-by-key")

    assert (str(found.group), found.member, found.sort) == ("order_id", None, None)
    assert found.row.full_name == "statecast.orders.v1.Order"


def test_members_have_a_key_and_a_sort(shipped: Callable[..., Pipeline]) -> None:
    found = shipped("orders-by-item")

    assert (str(found.group), str(found.member), str(found.sort)) == ("items.item_id", "order_id", "placed_at")


@pytest.mark.parametrize(
    ("replaced", "told"),
    [
        ({"source": {"topic": "orders", "message": MESSAGE + "s"}}, "source.message: no message"),
        ({"source": {"topic": "orders", "message": "statecast.orders.v1.Order"}}, "source.message: .* is not a change"),
        ({"group_by": "custmer_id"}, "group_by: no field 'custmer_id' .* did you mean customer_id?"),
        ({"group_by": "items"}, "group_by: items is of type message; it must be one of: string, integer, enum, bool"),
        ({"group_by": "placed_at"}, "group_by: placed_at is of type timestamp"),
        ({"keep": {"members": {"key": "id", "sort": "updated_at"}}}, "keep.members.key: no field 'id'"),
        (
            {"keep": {"members": {"key": "items.item_id", "sort": "updated_at"}}},
            "keep.members.key: .* many values",
        ),
        ({"keep": {"members": {"key": "order_id", "sort": "status"}}}, "keep.members.sort: status is of type enum"),
    ],
)
def test_what_does_not_fit_the_contract_is_named(
    shipped: Callable[..., Pipeline], replaced: dict[str, object], told: str
) -> None:
    with pytest.raises(PipelineFileError, match=f"orders-by-key.yaml: {told}"):
        shipped("orders-by-key", **replaced)
