"""Every message of the contract survives its encodings, filled in at random."""

import importlib
from collections.abc import Iterator
from typing import Any

import pytest
from google.protobuf import any_pb2, descriptor_pb2, json_format, message_factory, unknown_fields
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import Message
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import statecast

SCALARS: dict[int, st.SearchStrategy[Any]] = {
    FieldDescriptor.CPPTYPE_INT32: st.integers(-(2**31), 2**31 - 1),
    FieldDescriptor.CPPTYPE_UINT32: st.integers(0, 2**32 - 1),
    FieldDescriptor.CPPTYPE_INT64: st.integers(-(2**63), 2**63 - 1),
    FieldDescriptor.CPPTYPE_BOOL: st.booleans(),
    FieldDescriptor.CPPTYPE_DOUBLE: st.floats(allow_nan=False),
}
# The range that JSON can say: years 1 to 9999.
SECONDS = st.integers(-62_135_596_800, 253_402_300_799)
DURATIONS = st.integers(0, 315_576_000_000)
NANOS = st.integers(0, 999_999_999)
JSON_SCALARS = st.none() | st.booleans() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=20)
JSON_OBJECTS = st.dictionaries(st.text(max_size=5), JSON_SCALARS | st.lists(JSON_SCALARS, max_size=2), max_size=3)
JSON: dict[str, st.SearchStrategy[Any]] = {
    "google.protobuf.Value": JSON_SCALARS | JSON_OBJECTS,
    "google.protobuf.Struct": JSON_OBJECTS,
}
UNKNOWN_FIELD = b"\xfa\xff\x7f\x03abc"
"""Field 262,143, which no message has, of the wire type for texts: abc."""


def pool_of_the_contract() -> tuple[DescriptorPool, list[Descriptor]]:
    files = descriptor_pb2.FileDescriptorSet.FromString(statecast.descriptor_set()).file
    pool = DescriptorPool()
    for file in files:
        pool.Add(file)
    ours = [pool.FindFileByName(file.name) for file in files if file.name.startswith("statecast/")]
    return pool, [message for file in ours for message in file.message_types_by_name.values()]


POOL, MESSAGES = pool_of_the_contract()


def scalar(field: FieldDescriptor) -> st.SearchStrategy[Any]:
    if field.cpp_type == FieldDescriptor.CPPTYPE_STRING:
        return st.binary(max_size=20) if field.type == FieldDescriptor.TYPE_BYTES else st.text(max_size=20)
    if field.cpp_type == FieldDescriptor.CPPTYPE_ENUM:
        assert field.enum_type is not None
        return st.sampled_from([value.number for value in field.enum_type.values])
    return SCALARS[field.cpp_type]


def fields_of(kind: Descriptor, draw: st.DrawFn) -> Iterator[FieldDescriptor]:
    """Yields the fields to fill in: all of them, and one of each choice."""
    for field in kind.fields:
        choice = field.containing_oneof
        if choice is None or len(choice.fields) == 1:
            yield field
        elif field is choice.fields[0]:
            yield draw(st.sampled_from(list(choice.fields)))


@st.composite
def messages(draw: st.DrawFn, kind: Descriptor) -> Message:
    """Returns a message with every field filled in."""
    message = message_factory.GetMessageClass(kind)()
    if kind.full_name in {"google.protobuf.Timestamp", "google.protobuf.Duration"}:
        message.seconds = draw(SECONDS if kind.name == "Timestamp" else DURATIONS)  # type: ignore[attr-defined]
        message.nanos = draw(NANOS)  # type: ignore[attr-defined]
        return message
    if kind.full_name in JSON:
        return json_format.ParseDict(draw(JSON[kind.full_name]), message)
    if kind.full_name == "google.protobuf.Any":
        any_pb2.Any.Pack(message, draw(messages(POOL.FindMessageTypeByName("statecast.orders.v1.Order"))))  # type: ignore[arg-type]
        return message
    for field in fields_of(kind, draw):
        if field.message_type and field.message_type.GetOptions().map_entry:
            value = field.message_type.fields_by_name["value"]
            entries, key = getattr(message, field.name), draw(st.text(max_size=5))
            if value.message_type is None:
                entries[key] = draw(scalar(value))
            else:
                entries[key].CopyFrom(draw(messages(value.message_type)))
            continue
        values = messages(field.message_type) if field.message_type else scalar(field)
        if field.is_repeated:
            getattr(message, field.name).extend(draw(st.lists(values, min_size=1, max_size=2)))
        elif field.message_type:
            getattr(message, field.name).CopyFrom(draw(values))
        else:
            setattr(message, field.name, draw(values))
    return message


ROUNDS = settings(max_examples=8, suppress_health_check=list(HealthCheck))


def test_the_contract_is_walked_whole() -> None:
    assert len(MESSAGES) > 50
    packages = {message.file.package for message in MESSAGES}
    nouns = ("change", "orders", "portfolio", "bookings", "odds", "sales", "state", "query", "shard", "jobs")
    assert packages == {"statecast.push.v2", *(f"statecast.{noun}.v1" for noun in nouns)}


@pytest.mark.parametrize("kind", MESSAGES, ids=lambda kind: kind.full_name)
def test_a_message_survives_binary_and_json(kind: Descriptor) -> None:
    @ROUNDS
    @given(messages(kind))
    def survives(message: Message) -> None:
        again = type(message).FromString(message.SerializeToString())
        text = json_format.MessageToJson(message, preserving_proto_field_name=True, descriptor_pool=POOL)
        parsed = json_format.Parse(text, type(message)(), descriptor_pool=POOL)

        assert again == message
        assert parsed == message

    survives()


@pytest.mark.parametrize("kind", MESSAGES, ids=lambda kind: kind.full_name)
def test_a_field_of_a_later_version_survives(kind: Descriptor) -> None:
    message = message_factory.GetMessageClass(kind)()
    message.MergeFromString(UNKNOWN_FIELD)

    assert message.SerializeToString() == UNKNOWN_FIELD
    assert len(unknown_fields.UnknownFieldSet(message)) == 1


def test_the_installed_classes_are_those_of_the_descriptor_set() -> None:
    for kind in MESSAGES:
        module = importlib.import_module(kind.file.name.removesuffix(".proto").replace("/", ".") + "_pb2")
        installed = getattr(module, kind.name).DESCRIPTOR

        assert shape(installed) == shape(kind)


def shape(kind: Descriptor) -> list[tuple[str, int, int]]:
    return [(field.name, field.number, field.type) for field in kind.fields]
