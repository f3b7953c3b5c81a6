"""Messages of the contract as JSON Schemas."""

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorSet

from statecast import commented_descriptor_set
from ws_edge.web.json_schemas import schemas_of

CONTRACT = FileDescriptorSet.FromString(commented_descriptor_set())
PLACE = "#/definitions/"


def test_a_message_comes_with_all_that_it_refers_to_and_the_contracts_comments() -> None:
    schemas = schemas_of(CONTRACT, ("statecast.push.v1.Subscribe",), PLACE)
    subscribe = schemas["statecast.push.v1.Subscribe"]

    assert set(schemas) == {
        "statecast.push.v1.Subscribe",
        "statecast.state.v1.StateKey",
        "statecast.state.v1.Position",
    }
    assert subscribe["description"] == "Watches one key of a store."
    assert subscribe["properties"]["key"]["allOf"] == [{"$ref": PLACE + "statecast.state.v1.StateKey"}]
    assert subscribe["properties"]["interval_ms"]["type"] == "integer"
    assert "oneOf" not in subscribe
    assert subscribe["additionalProperties"] is False


def test_numbers_of_64_bits_may_be_texts_and_enums_are_words() -> None:
    schemas = schemas_of(CONTRACT, ("statecast.push.v1.Subscribed", "statecast.state.v1.Position"), PLACE)

    assert schemas["statecast.state.v1.Position"]["properties"]["offset"]["type"] == ["string", "integer"]
    assert schemas["statecast.push.v1.Start"]["enum"] == ["START_UNSPECIFIED", "START_SNAPSHOT", "START_RECOVERED"]


def test_a_message_that_is_not_there_is_a_mistake() -> None:
    with pytest.raises(KeyError, match="Nowhere"):
        schemas_of(CONTRACT, ("statecast.push.v1.Nowhere",), PLACE)
