"""Every element of the contract, and of its recorded releases, is in its guard, `proto/released.binpb`.

`buf breaking` holds only those elements.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from google.protobuf.descriptor_pb2 import DescriptorProto, EnumDescriptorProto, FileDescriptorProto, FileDescriptorSet

import statecast
from testkit.release.record import DESCRIPTORS, last_release

ROOT = Path(__file__).parents[2]
RELEASED = ROOT / "proto/released.binpb"


def elements(descriptor_set: bytes) -> set[str]:
    """The full names of all messages, fields with their numbers, enum values, services and methods."""
    files = FileDescriptorSet.FromString(descriptor_set).file
    return {name for file in files if not file.name.startswith("google/") for name in of_file(file)}


def of_file(file: FileDescriptorProto) -> Iterator[str]:
    yield from of_messages(file.package, file.message_type)
    yield from of_enums(file.package, file.enum_type)
    yield from (f"field {file.package}.{each.name} = {each.number}" for each in file.extension)
    for service in file.service:
        yield f"service {file.package}.{service.name}"
        yield from (f"method {file.package}.{service.name}.{each.name}" for each in service.method)


def of_messages(scope: str, messages: Iterable[DescriptorProto]) -> Iterator[str]:
    for message in messages:
        name = f"{scope}.{message.name}"
        yield f"message {name}"
        yield from (f"field {name}.{each.name} = {each.number}" for each in message.field)
        yield from of_messages(name, message.nested_type)
        yield from of_enums(name, message.enum_type)


def of_enums(scope: str, enums: Iterable[EnumDescriptorProto]) -> Iterator[str]:
    for enum in enums:
        yield f"enum {scope}.{enum.name}"
        yield from (f"value {scope}.{enum.name}.{each.name} = {each.number}" for each in enum.value)


def test_the_guard_has_every_element_of_the_contract() -> None:
    unguarded = sorted(elements(statecast.descriptor_set()) - elements(RELEASED.read_bytes()))

    assert not unguarded, "in no guard, run make release-contract: " + ", ".join(unguarded)


def test_the_guard_has_every_element_of_the_last_recorded_release() -> None:
    last = last_release(ROOT / "releases", "statecast-contract")
    recorded = elements((last / DESCRIPTORS).read_bytes()) if last else set()

    assert sorted(recorded - elements(RELEASED.read_bytes())) == []


@pytest.mark.parametrize(
    "element",
    [
        "message statecast.orders.v1.Order",
        "field statecast.orders.v1.Order.order_id = 1",
        "value statecast.change.v1.Operation.OPERATION_CREATE = 1",
        "service statecast.query.v1.QueryService",
        "field statecast.change.v1.decimal = 73451",
    ],
)
def test_each_kind_of_element_is_looked_at(element: str) -> None:
    assert element in elements(statecast.descriptor_set())
