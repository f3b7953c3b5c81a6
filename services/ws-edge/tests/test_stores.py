"""The stores file is checked against the contract before anything starts."""

import json
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import json_format
from google.protobuf.message import DecodeError
from google.protobuf.struct_pb2 import Value

from statecast.descriptors import MessageTypes
from statecast.orders.v1.order_pb2 import Order
from statecast.push.v1.push_pb2 import ServerFrame
from statecast_service.errors import SettingsError
from ws_edge.authorization import OwnerRule
from ws_edge.codec.stream_codec import StreamCodec
from ws_edge.errors import MalformedFrameError, UnknownStoreError
from ws_edge.private_fields import PrivateField
from ws_edge.states import KeyState, Position, RangeKey, StoreKey
from ws_edge.stores import SHIPPED, Store, Stores, find, read_stores

SORT = "2024-08-28T12:34:56.123456Z"


def test_the_shipped_stores_say_whose_their_rows_are() -> None:
    stores = read_stores(SHIPPED)

    assert stores["orders-by-key"].message is stores["orders-by-item"].message is Order
    assert stores["orders-by-key"].rule == OwnerRule("customer_id")
    assert stores["orders-by-customer"].rule == OwnerRule("customer_id", group=True)
    assert stores["orders-by-item"].rule == OwnerRule(None)
    assert stores["odds-by-match"].rule == OwnerRule(None, everyone=True)
    assert [stores[name].members for name in ("orders-by-key", "orders-by-customer")] == [False, True]


def test_an_unknown_store_is_named_with_its_nearest() -> None:
    with pytest.raises(UnknownStoreError, match="did you mean orders-by-key"):
        find(read_stores(SHIPPED), "order-by-key")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("stores: [", "is not YAML"),
        ("stores: {}", "wrong at stores"),
        ("stores: [{name: a, message: M, keeps: one}]", "wrong at stores.0.owner"),
        ("stores: [{name: a, message: M, keeps: one, owner: staff, colour: red}]", "wrong at stores.0.colour"),
        (
            "stores: [{name: a, message: statecast.orders.v1.Ordre, keeps: one, owner: staff}]",
            "did you mean statecast.orders.v1.Order",
        ),
        (
            "stores: [{name: a, message: statecast.orders.v1.Order, keeps: one, owner: {field: customer}}]",
            "did you mean customer_id",
        ),
    ],
)
def test_a_wrong_file_is_refused_with_what_is_wrong_in_it(tmp_path: Path, text: str, reason: str) -> None:
    path = tmp_path / "stores.yaml"
    path.write_text(text)

    with pytest.raises(SettingsError, match=reason) as refusal:
        read_stores(path)
    assert str(path) in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="nowhere"):
        read_stores(tmp_path / "nowhere.yaml")


@pytest.mark.parametrize(
    "key",
    [
        StoreKey("orders-by-key", ""),
        StoreKey("orders-by-key", "o", SORT, "m"),
        StoreKey("orders-by-customer", "c"),
        StoreKey("orders-by-customer", "c", SORT),
        StoreKey("orders-by-key", "a\0b"),
        StoreKey("orders-by-key", "x" * 1025),
    ],
)
def test_a_key_that_the_store_cannot_have_is_refused(key: StoreKey) -> None:
    with pytest.raises(MalformedFrameError):
        read_stores(SHIPPED)[key.store].check(key)


def test_a_key_of_the_stores_shape_passes() -> None:
    stores = read_stores(SHIPPED)
    stores["orders-by-key"].check(StoreKey("orders-by-key", "o"))
    stores["orders-by-customer"].check(StoreKey("orders-by-customer", "c", SORT, "o"))


WHOLE = RangeKey("orders-by-customer", "c", "", "", 0, False)


@pytest.mark.parametrize(
    "key",
    [
        WHOLE._replace(store="orders-by-key"),
        WHOLE._replace(group=""),
        WHOLE._replace(group="a\0b"),
        WHOLE._replace(sort_from="x" * 1025),
        WHOLE._replace(limit=-1),
        WHOLE._replace(sort_from="2", sort_to="1"),
    ],
)
def test_a_range_that_the_store_cannot_have_is_refused(key: RangeKey) -> None:
    with pytest.raises(MalformedFrameError):
        read_stores(SHIPPED)[key.store].check(key)


def test_a_range_of_a_store_with_members_passes() -> None:
    for key in (WHOLE, WHOLE._replace(sort_from="1", sort_to="2", limit=5, reverse=True)):
        read_stores(SHIPPED)[key.store].check(key)


def test_a_store_may_be_for_everyone(tmp_path: Path) -> None:
    path = tmp_path / "stores.yaml"
    path.write_text(
        "stores: [{name: matches-about-to-start, message: statecast.odds.v1.Match, keeps: members, owner: everyone}]"
    )

    assert read_stores(path)["matches-about-to-start"].rule == OwnerRule(None, everyone=True)


STORES_OF_A_TEAM = """
stores:
  - {name: shipments, message: acme.v1.Shipment, keeps: one, owner: {field: customer}}
  - {name: parcels, message: json, keeps: one, owner: {field: customer}}
"""
SHIPMENT = 'syntax = "proto3"; package acme.v1; message Shipment { string name = 1; string customer = 2; }'


@pytest.fixture
def team_stores(tmp_path: Path) -> Stores:
    (tmp_path / "stores.yaml").write_text(STORES_OF_A_TEAM)
    (tmp_path / "shipment.proto").write_text(SHIPMENT)
    return read_stores(tmp_path / "stores.yaml", MessageTypes.read(tmp_path))


def test_rows_of_mounted_messages_and_of_json_are_decoded_and_have_an_owner(team_stores: Stores) -> None:
    shipments, parcels = team_stores["shipments"], team_stores["parcels"]
    shipment = shipments.decode(shipments.message(name="s-1", customer="alice").SerializeToString())
    parcel = parcels.decode(b'{"name": "p-1", "customer": "bob"}')

    assert (shipments.kind, shipments.owner_of(shipment)) == ("acme.v1.Shipment", "alice")
    assert (parcels.kind, parcels.owner_of(parcel)) == ("json", "bob")


@pytest.mark.parametrize("binary", [False, True])
def test_rows_of_mounted_messages_and_of_json_are_framed(team_stores: Stores, binary: bool) -> None:
    codec = StreamCodec(team_stores, binary)
    payloads = {"shipments": b"\n\x03s-1", "parcels": b'{"name": "p-1", "sizes": [1, 2.5]}'}
    frames = [
        codec.changed(KeyState(StoreKey(name, "g"), Position(1, 1), team_stores[name].decode(payload)), 0)
        for name, payload in payloads.items()
    ]

    if binary:
        shipment, parcel = (ServerFrame.FromString(frame["bytes"]).changed.row for frame in frames)
        assert (shipment.TypeName(), shipment.value) == ("acme.v1.Shipment", payloads["shipments"])
        assert parcel.Is(Value.DESCRIPTOR)
        return
    rows = [json.loads(frame["text"])["changed"]["row"] for frame in frames]
    assert rows == [
        {"@type": "type.googleapis.com/acme.v1.Shipment", "name": "s-1"},
        {"@type": "type.googleapis.com/google.protobuf.Value", "value": {"name": "p-1", "sizes": [1, 2.5]}},
    ]
    json_format.Parse(frames[1]["text"], ServerFrame())


OTHERWISE: dict[str, Any] = {
    "name": "others",
    "message": MessageTypes.read().message_class("statecast.orders.v1.Order"),
    "members": True,
    "rule": OwnerRule(None, everyone=True),
    "max_lag_ms": 1000,
    "private": (PrivateField(("hands",), "player"),),
    "description": "Parcels on their way.",
    "interval_ms": 5000,
}


@pytest.mark.parametrize("name", [field.name for field in fields(Store)])
def test_a_store_of_which_anything_differs_is_not_like_it_was(team_stores: Stores, name: str) -> None:
    store = team_stores["parcels"]

    assert store.is_like(replace(store))
    assert not store.is_like(replace(store, **{name: OTHERWISE[name]}))


def test_a_message_that_is_read_anew_is_the_same(tmp_path: Path, team_stores: Stores) -> None:
    again = read_stores(tmp_path / "stores.yaml", MessageTypes.read(tmp_path))["shipments"]

    assert again.message is not team_stores["shipments"].message
    assert team_stores["shipments"].is_like(again)


def test_a_row_of_json_that_is_none_is_no_row(team_stores: Stores) -> None:
    with pytest.raises(DecodeError):
        team_stores["parcels"].decode(b"{")
