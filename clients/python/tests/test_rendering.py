"""Payloads are decoded by the message that the store names."""

import json
from base64 import b64encode
from pathlib import Path

import pytest

from statecast.descriptors import MessageTypes
from statecast.orders.v1 import order_pb2
from statecast_client.errors import InvalidError
from statecast_client.rendering import decoder, line


def test_a_message_of_the_contract_is_decoded_by_its_fields() -> None:
    order = order_pb2.Order(order_id="order-1", status=order_pb2.ORDER_STATUS_PLACED)
    value = decoder("statecast.orders.v1.Order")(order.SerializeToString())

    assert value == {"order_id": "order-1", "status": "ORDER_STATUS_PLACED"}


def test_json_is_passed_on() -> None:
    assert decoder("json")(b'{"a": [1, null]}') == {"a": [1, None]}


def test_half_a_surrogate_is_written_as_it_came() -> None:
    payload = b'{"name":"half \\ud83d of a smile","whole":"\\ud83d\\ude00"}'
    written = line(decoder("json")(payload)).encode()

    assert written == '{"name":"half \\ud83d of a smile","whole":"\U0001f600"}'.encode()
    assert json.loads(written) == json.loads(payload)


def test_an_undecodable_payload_is_shown_as_base64() -> None:
    shown = {"base64": "/w=="}

    assert decoder("statecast.orders.v1.Order")(b"\xff") == shown
    assert decoder("json")(b"\xff") == shown
    assert decoder("bytes")(b"\xff") == shown
    assert decoder("tomorrow.v1.Row")(b"\xff") == shown


@pytest.mark.parametrize("payload", [b'{"v":NaN}', b"[-Infinity]", b'{"v":1e999}', b"[" * 100_000 + b"]" * 100_000])
def test_json_that_cannot_be_written_as_json_is_shown_as_base64(payload: bytes) -> None:
    assert decoder("json")(payload) == {"base64": b64encode(payload).decode()}


def test_a_message_of_the_mounted_directory_is_decoded_by_its_fields(tmp_path: Path) -> None:
    (tmp_path / "shipment.proto").write_text('syntax = "proto3"; package acme; message Shipment { string name = 1; }')
    payload = MessageTypes.read(tmp_path).message_class("acme.Shipment")(name="s-1").SerializeToString()

    assert decoder("acme.Shipment", tmp_path)(payload) == {"name": "s-1"}
    assert decoder("acme.Shipment")(payload) == {"base64": "CgNzLTE="}
    with pytest.raises(InvalidError, match="nowhere is not a directory"):
        decoder("acme.Shipment", tmp_path / "nowhere")
