"""Every element of the contract, and of its recorded releases, is in its guard, `proto/released.binpb`.

`buf breaking` holds only those elements.
"""

import json
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from google.protobuf.descriptor_pb2 import DescriptorProto, EnumDescriptorProto, FileDescriptorProto, FileDescriptorSet

import statecast
from testkit.release.record import DESCRIPTORS, last_release
from testkit.waiting import scaled

ROOT = Path(__file__).parents[2]
RELEASED = ROOT / "proto/released.binpb"
RENUMBERED = re.compile(r'Previously present field "(\d+)" with name ".*" on message "(.*)" was deleted')


def elements(descriptor_set: bytes) -> set[str]:
    """Returns the full names of all messages, fields with their numbers, enum values, services and methods."""
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


def own_messages(messages: Iterable[DescriptorProto], scope: str = "") -> Iterator[tuple[str, DescriptorProto]]:
    for message in messages:
        if not message.options.map_entry:
            yield scope + message.name, message
            yield from own_messages(message.nested_type, f"{scope}{message.name}.")


def test_another_number_of_any_field_is_refused(tmp_path: Path) -> None:
    changed = FileDescriptorSet.FromString(RELEASED.read_bytes())
    fields = set[tuple[str, str]]()
    for file in changed.file:
        if file.package.startswith("statecast."):
            for name, message in own_messages(file.message_type):
                fields |= {(str(field.number), name) for field in message.field}
                for field in message.field:
                    field.number += 10_000
    (tmp_path / "changed.binpb").write_bytes(changed.SerializeToString())
    buf, against = Path(sys.executable).with_name("buf"), ("--against", RELEASED, "--error-format", "json")
    command = [str(each) for each in (buf, "breaking", tmp_path / "changed.binpb", *against)]
    ended = subprocess.run(command, cwd=ROOT / "proto", capture_output=True, text=True, timeout=scaled(60), check=False)
    problems = [json.loads(line)["message"] for line in ended.stdout.splitlines()]

    assert {match.groups() for match in map(RENUMBERED.match, problems) if match} == fields, ended.stderr
