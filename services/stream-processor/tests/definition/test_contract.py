"""The contract's messages and the paths through them."""

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorSet

from stream_processor.definition.contract import Contract
from stream_processor.errors import ContractError

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


def test_descriptors_of_messages_are_their_files_after_all_that_those_import(contract: Contract) -> None:
    sent = contract.descriptors("statecast.orders.v1.OrderChange", "statecast.state.v1.StateRecord")

    assert [file.name for file in FileDescriptorSet.FromString(sent).file] == [
        "google/protobuf/timestamp.proto",
        "statecast/change/v1/change.proto",
        "statecast/orders/v1/order.proto",
        "statecast/state/v1/state.proto",
    ]


def test_descriptors_of_a_message_suffice_to_read_it(contract: Contract) -> None:
    alone = Contract(contract.descriptors("statecast.orders.v1.OrderChange"))

    before = alone.path(alone.message("statecast.orders.v1.OrderChange"), "before.items.item_id")

    assert (str(before), before.repeated) == ("before.items.item_id", True)


def test_descriptors_of_an_unknown_message_give_the_nearest(contract: Contract) -> None:
    with pytest.raises(ContractError, match=r"did you mean statecast\.orders\.v1\.Order\?"):
        contract.descriptors("statecast.orders.v1.Ordre")
