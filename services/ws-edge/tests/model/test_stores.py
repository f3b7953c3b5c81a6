"""Stores of the query service, as the edge shows them."""

import json
import re
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.message import DecodeError

from query_service.server.shard_listing import listed
from statecast.descriptors import MessageTypes
from statecast.orders.v1.order_pb2 import Order
from statecast.push.v2.push_pb2 import Row
from statecast.query.v1 import query_pb2
from testkit.ws_edge.answers import ALICE
from testkit.ws_edge.fake_query_service import SHIPPED_DEFINITIONS, SHIPPED_STORES, definitions, edge_stores
from ws_edge.channels import EDGE_STORES
from ws_edge.codec.bodies import View, binary_body, json_body
from ws_edge.errors import MalformedFrameError, UnavailableError, UnknownStoreError
from ws_edge.model.authorization import OwnerRule
from ws_edge.model.listed_stores import fault_of, store_of
from ws_edge.model.private_fields import PrivateField
from ws_edge.model.questions import Question
from ws_edge.model.states import KeyState, Position, StoreKey
from ws_edge.model.stores import Store, Stores, find
from ws_edge.watches.subscription import RowNews


def test_the_shipped_stores_say_whose_their_rows_are() -> None:
    stores = SHIPPED_STORES

    assert stores["orders-by-key"].message is stores["orders-by-item"].message is Order
    assert stores["orders-by-key"].rule == OwnerRule("customer_id")
    assert stores["orders-by-customer"].rule == OwnerRule("customer_id", group=True)
    assert stores["orders-by-item"].rule == OwnerRule(None)
    assert stores["odds-by-match"].rule == OwnerRule(None, everyone=True)
    assert [stores[name].members for name in ("orders-by-key", "orders-by-customer")] == [False, True]


def test_an_unknown_store_is_named_with_its_nearest() -> None:
    with pytest.raises(UnknownStoreError, match="did you mean orders-by-key"):
        find(SHIPPED_STORES, ALICE, "order-by-key")


def test_nothing_is_said_of_a_store_before_any_is_known() -> None:
    with pytest.raises(UnavailableError, match="no query service has listed any"):
        find({}, ALICE, "orders-by-key")


ORDERS = "statecast.orders.v1.Order"


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ("message: statecast.orders.v1.Ordre", "nor mounted at this edge; did you mean statecast.orders.v1.Order?"),
        (f"message: {ORDERS}, readers: {{field: customer}}", "has no text field 'customer'"),
        (f"message: {ORDERS}, private: [{{path: item, owner: customer_id}}]", "has no field 'item'"),
        (f"message: {ORDERS}, private: [{{path: items, owner: customer}}]", "has no text field 'customer'"),
        (f"message: {ORDERS}, private: [{{path: items.name, owner: x}}]", "'items' holds no single message"),
    ],
)
def test_a_store_that_cannot_be_shown_is_refused(fields: str, reason: str) -> None:
    with pytest.raises(ValueError, match=re.escape(reason)):
        edge_stores(definitions(f"stores: [{{name: a, {fields}}}]"))


def test_a_store_with_readers_of_a_newer_kind_is_refused() -> None:
    newer = listed(SHIPPED_DEFINITIONS["orders-by-key"])
    newer.readers = 99  # type: ignore[assignment]

    with pytest.raises(ValueError, match="of a kind that this edge does not know"):
        store_of(newer, MessageTypes.read())


@pytest.mark.parametrize(
    ("name", "changed", "reason"),
    [
        ("orders-by-key", {"readers": query_pb2.READERS_UNSPECIFIED}, "does not say who may read the store orders-by"),
        ("push-channels", {"partitioner": query_pb2.PARTITIONER_CRC32}, "push-channels needs partitioner murmur2"),
        ("push-channels", {"message": ORDERS}, "push-channels holds statecast.orders.v1.Order"),
    ],
)
def test_a_listing_that_no_store_may_be_taken_from_is_named(name: str, changed: dict[str, Any], reason: str) -> None:
    stores = {name: listed(definition) for name, definition in SHIPPED_DEFINITIONS.items()}

    assert fault_of(stores.values(), EDGE_STORES) is None

    stores[name].MergeFrom(query_pb2.Store(**changed))
    if "readers" in changed:
        stores[name].ClearField("readers")

    assert reason in str(fault_of(stores.values(), EDGE_STORES))


KEY, RANGE = (Question(SHIPPED_STORES[name], "g") for name in ("orders-by-key", "orders-by-customer"))


@pytest.mark.parametrize(
    "question",
    [
        replace(KEY, group=""),
        replace(KEY, group="a\0b"),
        replace(KEY, group="x" * 1025),
        replace(RANGE, group=""),
        replace(RANGE, sort_from="x" * 1025),
        replace(RANGE, limit=-1),
        replace(RANGE, sort_from="2", sort_to="1"),
    ],
)
def test_a_question_that_the_store_cannot_answer_is_refused(question: Question) -> None:
    with pytest.raises(MalformedFrameError):
        question.check()


def test_a_question_of_the_stores_shape_passes() -> None:
    for question in (KEY, RANGE, replace(RANGE, sort_from="1", sort_to="2", limit=5, reverse=True)):
        question.check()


STORES_OF_A_TEAM = """
stores:
  - {name: shipments, message: acme.v1.Shipment, readers: {field: customer}}
  - {name: parcels, message: json, readers: {field: customer}}
"""
SHIPMENT = 'syntax = "proto3"; package acme.v1; message Shipment { string name = 1; string customer = 2; }'


@pytest.fixture
def team_stores(tmp_path: Path) -> Stores:
    (tmp_path / "shipment.proto").write_text(SHIPMENT)
    return edge_stores(definitions(STORES_OF_A_TEAM), MessageTypes.read(tmp_path))


def test_rows_of_mounted_messages_and_of_json_are_decoded_and_have_an_owner(team_stores: Stores) -> None:
    shipments, parcels = team_stores["shipments"], team_stores["parcels"]
    shipment = shipments.decode(shipments.message(name="s-1", customer="alice").SerializeToString())
    parcel = parcels.decode(b'{"name": "p-1", "customer": "bob"}')

    assert (shipments.kind, shipments.owner_of(shipment)) == ("acme.v1.Shipment", "alice")
    assert (parcels.kind, parcels.owner_of(parcel)) == ("json", "bob")


PAYLOADS = {"shipments": b"\n\x03s-1", "parcels": b'{"name":"p-1","sizes":[1,2.5]}'}


def test_rows_of_mounted_messages_and_of_json_are_encoded(team_stores: Stores) -> None:
    states = [
        KeyState(StoreKey(name, "g"), Position(1, 1), team_stores[name].decode(payload))
        for name, payload in PAYLOADS.items()
    ]
    shown = [json.loads(json_body(RowNews(state), View()) or b"") for state in states]
    encoded = [Row.FromString(binary_body(RowNews(state), View()) or b"").encoded for state in states]

    assert shown == [{"row": {"name": "s-1", "customer": ""}}, {"row": {"name": "p-1", "sizes": [1, 2.5]}}]
    assert encoded[0] == PAYLOADS["shipments"]
    assert json.loads(encoded[1]) == json.loads(PAYLOADS["parcels"])


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
    again = edge_stores(definitions(STORES_OF_A_TEAM), MessageTypes.read(tmp_path))["shipments"]

    assert again.message is not team_stores["shipments"].message
    assert team_stores["shipments"].is_like(again)


def test_a_row_of_json_that_is_none_is_no_row(team_stores: Stores) -> None:
    with pytest.raises(DecodeError):
        team_stores["parcels"].decode(b"{")
