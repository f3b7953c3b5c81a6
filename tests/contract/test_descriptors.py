"""Message types of a mounted directory stand beside those of the contract, or are refused by file and line."""

from importlib.resources import files
from pathlib import Path

import pytest
from google.protobuf import descriptor_pb2, json_format

import statecast
from statecast.descriptors import DescriptorsError, MessageTypes
from statecast.orders.v1.order_pb2 import Order

SHIPMENT = """\
syntax = "proto3";
package acme.v1;

import "google/protobuf/wrappers.proto";
import "statecast/change/v1/change.proto";

message Shipment {
  string shipment_id = 1;
  google.protobuf.StringValue note = 2;
}

message ShipmentChange {
  statecast.change.v1.Operation operation = 1;
  statecast.change.v1.Source source = 2;
  Shipment before = 3;
  Shipment after = 4;
}
"""


@pytest.fixture
def mounted(tmp_path: Path) -> Path:
    directory = tmp_path / "messages"
    (directory / "acme/v1").mkdir(parents=True)
    (directory / "acme/v1/shipment.proto").write_text(SHIPMENT)
    return directory


def test_proto_files_that_import_the_contract_are_compiled(mounted: Path) -> None:
    types = MessageTypes.read(mounted)

    assert types.fields["acme.v1.Shipment"] == {"shipment_id", "note"}
    shipment = types.message_class("acme.v1.Shipment")(shipment_id="s-1")
    assert types.message_class("acme.v1.Shipment").FromString(shipment.SerializeToString()) == shipment


PRICED = """\
syntax = "proto3";
package acme.v1;
import "statecast/change/v1/decimal.proto";
message Priced { string price = 1 [(statecast.change.v1.decimal) = {precision: 12, scale: 2}]; }
"""


def test_a_text_that_is_a_decimal_is_a_text_to_who_reads_the_message(mounted: Path) -> None:
    (mounted / "priced.proto").write_text(PRICED)
    types = MessageTypes.read(mounted)
    priced = types.message_class("acme.v1.Priced")(price="12.50")

    assert json_format.MessageToDict(priced) == {"price": "12.50"}
    assert json_format.ParseDict({"price": "12.50"}, types.message_class("acme.v1.Priced")()) == priced


def test_a_set_that_declares_the_option_itself_is_the_contracts(mounted: Path) -> None:
    (mounted / "priced.proto").write_text(PRICED)
    whole = MessageTypes.read(mounted).descriptor_set
    (mounted / "priced.proto").unlink()
    (mounted / "acme/v1/shipment.proto").unlink()
    (mounted / "priced.binpb").write_bytes(whole)

    assert "acme.v1.Priced" in MessageTypes.read(mounted).rows


def test_the_generated_classes_stay_those_of_the_contract(mounted: Path) -> None:
    assert MessageTypes.read(mounted).message_class("statecast.orders.v1.Order") is Order
    assert MessageTypes.read().descriptor_set == statecast.descriptor_set()


NESTED = """\
syntax = "proto3";
package statecast.acme.v1;
message Parcel { message Label { string text = 1; } Label label = 1; map<string, int32> parts = 2; }
"""


def test_a_mounted_file_below_the_contracts_folder_has_a_class_of_its_own(mounted: Path) -> None:
    (mounted / "statecast/acme/v1").mkdir(parents=True)
    (mounted / "statecast/acme/v1/s.proto").write_text(NESTED)
    types = MessageTypes.read(mounted)
    label = types.message_class("statecast.acme.v1.Parcel.Label")(text="a")

    assert types.message_class("statecast.acme.v1.Parcel")(label=label).SerializeToString() == b"\n\x03\n\x01a"


def test_every_row_has_a_class(mounted: Path) -> None:
    (mounted / "nested.proto").write_text(NESTED)
    types = MessageTypes.read(mounted)

    assert {name: types.message_class(name).DESCRIPTOR.full_name for name in types.rows} == {n: n for n in types.rows}


def test_googles_own_files_may_be_mounted_beside_those_that_import_them(mounted: Path) -> None:
    (mounted / "google/protobuf").mkdir(parents=True)
    for name in ("timestamp", "wrappers", "duration"):
        source = files("grpc_tools") / f"_proto/google/protobuf/{name}.proto"
        (mounted / f"google/protobuf/{name}.proto").write_text(source.read_text())
    types = MessageTypes.read(mounted)

    assert "acme.v1.Shipment" in types.rows
    (mounted / "acme/v1/shipment.proto").unlink()
    assert MessageTypes.read(mounted).rows == MessageTypes.read().rows


@pytest.mark.parametrize("name", ["-shipment.proto", "@shipment.proto"])
def test_a_name_that_protoc_takes_for_an_option_is_refused(mounted: Path, name: str) -> None:
    (mounted / name).write_text(SHIPMENT)

    with pytest.raises(DescriptorsError, match=f"{name}: protoc takes a name with {name[0]} for an option: rename it"):
        MessageTypes.read(mounted)


def test_each_file_comes_after_its_imports(mounted: Path) -> None:
    imported = descriptor_pb2.FileDescriptorSet.FromString(MessageTypes.read(mounted).descriptor_set).file
    names = [file.name for file in imported]

    assert "acme/v1/shipment.proto" in names
    assert all(names.index(name) < names.index(file.name) for file in imported for name in file.dependency)


def test_a_descriptor_set_is_read_and_proto_files_may_import_it(mounted: Path) -> None:
    (mounted / "shipments.binpb").write_bytes(MessageTypes.read(mounted).descriptor_set)
    (mounted / "acme/v1/shipment.proto").unlink()
    (mounted / "parcel.proto").write_text(
        'syntax = "proto3"; import "acme/v1/shipment.proto"; message Parcel { acme.v1.Shipment of = 1; }'
    )

    assert {"acme.v1.Shipment", "Parcel"} <= MessageTypes.read(mounted).rows


def test_what_a_config_map_hides_is_passed_over(mounted: Path) -> None:
    (mounted / "..2026_11_23").mkdir()
    (mounted / "..2026_11_23/shipment.proto").write_text(SHIPMENT)

    assert "acme.v1.Shipment" in MessageTypes.read(mounted).rows


def test_a_file_that_does_not_compile_is_named_with_its_line(mounted: Path) -> None:
    (mounted / "bad.proto").write_text('syntax = "proto3";\nmessage Bad {\n  string id = 1\n}\n')

    with pytest.raises(DescriptorsError, match=r'messages/bad\.proto:4:1: Expected ";"') as refusal:
        MessageTypes.read(mounted)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        (
            "other.proto",
            'syntax = "proto3"; package acme.v1; message Shipment {}',
            r"acme\.v1\.Shipment.* already defined|acme\.v1\.Shipment is declared twice: in .* and in .*other\.proto",
        ),
        (
            "orders.proto",
            'syntax = "proto3"; package statecast.orders.v1; message Order {}',
            r"statecast\.orders\.v1\.Order is declared twice: in statecast/orders/v1/order\.proto of the contract and",
        ),
    ],
)
def test_a_name_that_exists_twice_is_refused(mounted: Path, name: str, content: str, reason: str) -> None:
    (mounted / name).write_text(content)

    with pytest.raises(DescriptorsError, match=reason):
        MessageTypes.read(mounted)


def test_another_version_of_a_contract_file_is_refused(mounted: Path) -> None:
    (mounted / "statecast/orders/v1").mkdir(parents=True)
    (mounted / "statecast/orders/v1/order.proto").write_text('syntax = "proto3"; message Mine {}')
    with pytest.raises(DescriptorsError, match=r"order\.proto: the contract has a file of that name"):
        MessageTypes.read(mounted)

    contract = descriptor_pb2.FileDescriptorSet.FromString(statecast.descriptor_set())
    next(file for file in contract.file if file.name.endswith("order.proto")).message_type[0].name = "Other"
    (mounted / "statecast/orders/v1/order.proto").unlink()
    (mounted / "old.binpb").write_bytes(contract.SerializeToString())
    with pytest.raises(DescriptorsError, match=r"old\.binpb: .*order\.proto differs from that of the contract"):
        MessageTypes.read(mounted)


@pytest.mark.parametrize("content", [b"", b"\xff\xff", b"no set"])
def test_what_is_no_descriptor_set_is_refused(mounted: Path, content: bytes) -> None:
    (mounted / "set.binpb").write_bytes(content)

    with pytest.raises(DescriptorsError, match=r"set\.binpb is not a serialized FileDescriptorSet"):
        MessageTypes.read(mounted)


def test_a_set_without_its_imports_is_refused(mounted: Path) -> None:
    file = descriptor_pb2.FileDescriptorProto(name="a.proto", dependency=["elsewhere.proto"])
    (mounted / "a.binpb").write_bytes(descriptor_pb2.FileDescriptorSet(file=[file]).SerializeToString())

    with pytest.raises(DescriptorsError, match=r"a\.proto imports elsewhere\.proto, which is not there"):
        MessageTypes.read(mounted)


def test_a_directory_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DescriptorsError, match="nowhere is not a directory"):
        MessageTypes.read(tmp_path / "nowhere")


def test_a_message_of_google_is_no_row() -> None:
    with pytest.raises(KeyError):
        MessageTypes.read().message_class("google.protobuf.Timestamp")
