"""Which keys of a file go together."""

from collections.abc import Callable

import pytest

from stream_processor.definition.pipeline import Pipeline
from stream_processor.errors import PipelineFileError

POSITIONS = {"topic": "open-positions", "message": "statecast.portfolio.v1.OpenPositionChange"}
MESSAGE = "statecast.orders.v1.OrderChange"


@pytest.mark.parametrize(
    ("name", "replaced", "told"),
    [
        (
            "orders-by-customer",
            {"source": {"topic": "o", "message": MESSAGE, "epoch": 2}},
            "source.epoch: has no meaning",
        ),
        ("orders-by-key", {"window": {"time": "placed_at", "size": "1h"}}, "window: has no meaning with keep: latest"),
        ("orders-by-key", {"explode": "items"}, "explode: has no meaning with keep: latest; it goes with: route"),
        ("orders-by-key", {"insert_only": True}, "insert_only: has no meaning with keep: latest"),
        ("home-delivery", {"forget_deleted": "1d"}, "forget_deleted: has no meaning with keep: route"),
        ("orders-by-key", {"select": {"order_id": "order_id"}}, "sink.message: is missing: select fills its fields"),
        ("invoices-with-store", {"select": None}, "select: is missing: without it nothing of the joined tables"),
        ("masked-lines", {"select": None}, "select: is missing: without it each element"),
        ("us-share-holders", {"source": POSITIONS}, "source.key: is missing: an aggregate needs"),
        ("us-share-holders", {"sink": {"topic": "t"}}, "sink.message: is missing: an aggregate needs a message"),
    ],
)
def test_a_key_without_meaning_or_a_missing_one_is_named(
    shipped: Callable[..., Pipeline], name: str, replaced: dict[str, object], told: str
) -> None:
    with pytest.raises(PipelineFileError, match=f"{name}.yaml: .*{told}"):
        shipped(name, **replaced)
