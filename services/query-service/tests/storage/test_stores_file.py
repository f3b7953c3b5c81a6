"""The stores file is checked against the contract."""

import json
from pathlib import Path

import pytest
import yaml
from jsonschema import Draft202012Validator

from query_service.errors import StoresFileError
from query_service.settings import SHIPPED_STORES
from query_service.storage.stores_file import read_stores, stores_schema
from statecast.descriptors import MessageTypes

STORE = "{name: a, topic: a, message: statecast.orders.v1.Order}"
SCHEMA = SHIPPED_STORES.with_name("stores.schema.json")


def with_fields(fields: str) -> str:
    return f"stores: [{{name: a, topic: a, {fields}}}]"


def test_the_shipped_file_has_the_stores_of_the_domains_and_those_of_the_edges() -> None:
    stores = {store.name: store for store in read_stores(SHIPPED_STORES)}

    orders = stores["orders-by-customer"]
    assert (orders.topic, orders.message, orders.owner) == (
        "orders-by-customer",
        "statecast.orders.v1.Order",
        "customer_id",
    )
    assert (stores["matches-about-to-start"].in_memory, stores["odds-by-match"].in_memory) == (True, False)
    assert [name for name, store in stores.items() if store.plain] == ["push-channels", "revoked-consumers"]


def test_a_store_says_how_it_is_read_and_what_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "stores.yaml"
    path.write_text(
        with_fields(
            "message: json, format: plain, partitioner: crc32, store: {engine: memory}, replicas: 3, retain: 24h,"
            "history: {age: 10m}, owner: customer"
        )
    )
    (store,) = read_stores(path)

    assert (store.plain, store.in_memory, store.partitioner, store.replicas) == (True, True, "crc32", 3)
    assert store.retain == 24 * 3_600_000
    assert store.history is not None
    assert store.history.age == 600_000
    assert store.owner == "customer"


def test_a_store_is_a_keyed_topic_on_disk_unless_it_says_otherwise(tmp_path: Path) -> None:
    path = tmp_path / "stores.yaml"
    path.write_text(f"stores: [{STORE}]")
    (store,) = read_stores(path)

    assert (store.plain, store.in_memory, store.partitioner) == (False, False, "murmur2")
    assert (store.replicas, store.retain, store.history, store.owner) == (None, None, None, None)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("stores: [", "is not YAML"),
        ("", "the file: "),
        ("stores: []", "stores is empty"),
        ("shops: []", r"shops is not known: did you mean stores\?"),
        ("stores: [{name: a, topic: a}]", r"stores\[0\]\.message: Field required"),
        (with_fields("mesage: x"), r"stores\[0\]\.mesage is not known: did you mean message\?"),
        (with_fields("message: m, store: {engin: memory}"), r"store\.engin is not known: did you mean engine\?"),
        (with_fields("message: m, store: {engine: disk}"), r"stores\[0\]\.store\.engine: .*'rocksdb' or 'memory'"),
        (with_fields("message: m, history: {version: 3}"), r"version is not known: did you mean versions\?"),
        (with_fields("message: m, retain: soon"), r"stores\[0\]\.retain: `soon` is not a duration: write a number"),
        (with_fields("message: m, retain: 24"), r"stores\[0\]\.retain: `24` is not a duration"),
        ("stores: [{name: a b, topic: a, message: m}]", r"stores\[0\]\.name: "),
        ("stores: [{name: a, topic: ., message: m}]", r"stores\[0\]\.topic: .*'\.' is no topic's name"),
        ('stores: [{name: a, topic: "a\\n", message: m}]', r"stores\[0\]\.topic: .* is no topic's name"),
        (
            with_fields("message: statecast.orders.v1.Ordre"),
            r"stores\[0\]\.message `statecast\.orders\.v1\.Ordre` .* did you mean statecast\.orders\.v1\.Order\?",
        ),
        (
            with_fields("message: jsno, format: plain"),
            r"message `jsno` is not in the contract, .*: did you mean json\?",
        ),
        (with_fields("message: json"), r"stores\[0\]\.message `json` needs `format: plain`: add it"),
        (f"stores: [{STORE[:-1]}, retain: 1h}}]", r"stores\[0\]\.retain needs `format: plain`: remove it"),
        (f"stores: [{STORE[:-1]}, partitioner: crc32}}]", r"stores\[0\]\.partitioner needs `format: plain`: remove"),
        (f"stores: [{STORE[:-1]}, history: {{}}}}]", r"history takes either `versions` or `age`"),
        (f"stores: [{STORE[:-1]}, history: {{versions: 2, age: 1m}}}}]", r"history takes either `versions` or `age`"),
        (
            with_fields("message: json, format: plain, retain: 1h, history: {age: 2h}"),
            r"history\.age is above retain, .* lower it",
        ),
        (f"stores: [{STORE[:-1]}, owner: custmer_id}}]", r"owner `custmer_id` .* did you mean customer_id\?"),
        (with_fields("message: bytes, format: plain, owner: id"), r"owner needs fields, and `message: bytes` has none"),
        (f"stores: [{STORE}, {STORE}]", r"stores\[1\]\.name `a` is there twice"),
        (f"stores: [{STORE}, {STORE.replace('name: a', 'name: b')}]", r"stores\[1\]\.topic `a` is another store's"),
    ],
)
def test_a_wrong_file_is_refused_with_one_line(tmp_path: Path, text: str, complaint: str) -> None:
    path = tmp_path / "stores.yaml"
    path.write_text(text)

    with pytest.raises(StoresFileError, match=complaint) as raised:
        read_stores(path)

    assert str(path) in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(StoresFileError, match=r"none\.yaml cannot be read: No such file"):
        read_stores(tmp_path / "none.yaml")


def test_a_store_can_hold_a_mounted_message(tmp_path: Path) -> None:
    (tmp_path / "shipment.proto").write_text('syntax = "proto3"; package acme; message Shipment { string owner = 1; }')
    path = tmp_path / "stores.yaml"
    path.write_text(with_fields("message: acme.Shipment, owner: owner"))
    types = MessageTypes.read(tmp_path)

    assert [store.message for store in read_stores(path, types)] == ["acme.Shipment"]
    with pytest.raises(StoresFileError, match=r"`acme\.Shipment` is not in the contract, nor mounted"):
        read_stores(path)
    path.write_text(with_fields("message: acme.Shipment, owner: ownr"))
    with pytest.raises(StoresFileError, match=r"did you mean owner\?"):
        read_stores(path, types)


def test_the_schema_that_ships_is_the_one_of_the_code() -> None:
    assert SCHEMA.read_text() == stores_schema(), f"run: query-service schema > {SCHEMA}"


def test_the_schema_takes_what_the_reader_takes_and_refuses_what_is_unknown() -> None:
    validator = Draft202012Validator(json.loads(SCHEMA.read_text()))

    assert validator.is_valid(yaml.safe_load(SHIPPED_STORES.read_text()))
    assert validator.is_valid(yaml.safe_load(with_fields("message: json, format: plain, retain: 24h")))
    assert not validator.is_valid(yaml.safe_load(with_fields("mesage: json")))
    assert not validator.is_valid(yaml.safe_load(with_fields("message: json, retain: soon")))
