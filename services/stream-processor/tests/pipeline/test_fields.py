"""The contract's messages and the paths through them."""

import pytest

from stream_processor.errors import ContractError
from stream_processor.pipeline.fields import Contract

ORDER = "statecast.orders.v1.Order"


@pytest.mark.parametrize(
    ("text", "kind", "repeated"),
    [
        ("order_id", "string", False),
        ("status", "enum", False),
        ("total_cents", "integer", False),
        ("placed_at", "timestamp", False),
        ("items", "message", True),
        ("items.item_id", "string", True),
    ],
)
def test_a_path_knows_its_kind(contract: Contract, text: str, kind: str, repeated: bool) -> None:
    path = contract.path(contract.message(ORDER), text)

    assert (str(path), path.kind, path.repeated) == (text, kind, repeated)


def test_an_unknown_message_gives_the_nearest(contract: Contract) -> None:
    with pytest.raises(ContractError, match=r"did you mean statecast\.orders\.v1\.Order\?"):
        contract.message("statecast.orders.v1.Ordre")


def test_an_unknown_field_gives_the_nearest(contract: Contract) -> None:
    with pytest.raises(ContractError, match=r"no field 'item' in .*OrderItem; did you mean item_id"):
        contract.path(contract.message(ORDER), "items.item")


@pytest.mark.parametrize("text", ["order_id.length", "placed_at.seconds"])
def test_a_path_does_not_go_into_a_value(contract: Contract, text: str) -> None:
    with pytest.raises(ContractError, match="is no message, it has no field"):
        contract.path(contract.message(ORDER), text)
