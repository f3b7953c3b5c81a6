"""The stores file is checked against the contract."""

import json
import re
from pathlib import Path

import pytest
import yaml
from jsonschema import Draft202012Validator

from query_service.errors import StoresFileError
from query_service.settings import SHIPPED_STORES
from query_service.storage.stores_file import CHECKPOINTS, SET_ASIDE, UNFINISHED, read_stores, stores_schema
from statecast.descriptors import MessageTypes

STORE = "{name: a, topic: a, message: statecast.orders.v1.Order}"
SCHEMA = SHIPPED_STORES.with_name("stores.schema.json")


def with_fields(fields: str) -> str:
    return f"stores: [{{name: a, topic: a, {fields}}}]"


def test_the_shipped_file_has_the_stores_of_the_domains_and_those_of_the_edges() -> None:
    stores = {store.name: store for store in read_stores(SHIPPED_STORES)}

    orders = stores["orders-by-customer"]
    assert (orders.topic, orders.message) == ("orders-by-customer", "statecast.orders.v1.Order")
    assert (orders.owner, orders.group_is_owner, orders.keeps) == ("customer_id", True, "members")
    assert (stores["orders-by-item"].readers, stores["odds-by-match"].readers) == ("staff", "everyone")
    assert (stores["matches-about-to-start"].in_memory, stores["odds-by-match"].in_memory) == (True, False)
    assert [name for name, store in stores.items() if store.plain] == ["push-channels", "revoked-consumers"]


def test_a_store_says_how_it_is_read_and_what_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "stores.yaml"
    path.write_text(
        with_fields(
            "message: json, format: plain, partitioner: crc32, engine: memory, replicas: 3, retain: 24h,"
            "history: {age: 10m}, readers: {field: customer}"
        )
    )
    (store,) = read_stores(path)

    assert (store.plain, store.in_memory, store.partitioner, store.replicas) == (True, True, "crc32", 3)
    assert (store.retain_ms, store.versions_ms) == (24 * 3_600_000, 600_000)
    assert store.owner == "customer"


def test_a_store_is_a_keyed_topic_on_disk_unless_it_says_otherwise(tmp_path: Path) -> None:
    path = tmp_path / "stores.yaml"
    path.write_text(f"stores: [{STORE}]")
    (store,) = read_stores(path)

    assert (store.plain, store.in_memory, store.partitioner) == (False, False, "murmur2")
    assert (store.replicas, store.retain, store.history) == (None, None, None)
    assert (store.readers, store.keeps, store.private) == ("staff", "one", [])


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("stores: [", "is not YAML"),
        ("", "is not a stores file: its top level must be keys and values"),
        ("stores: []", "stores is empty"),
        ("shops: []", r"shops: unknown key; one of: stores"),
        ("stores: [{name: a, topic: a}]", r"stores\[0\]\.message: is missing"),
        (with_fields("mesage: x"), r"stores\[0\]\.mesage: unknown key; did you mean message\?"),
        (
            with_fields("message: m, engine: disk"),
            r"stores\[0\]\.engine: 'disk' is not supported; one of: memory",
        ),
        (with_fields("message: m, history: {version: 3}"), r"version: unknown key; did you mean versions\?"),
        (with_fields("message: m, retain: soon"), r"stores\[0\]\.retain: 'soon' is not a duration like 500ms"),
        (with_fields("message: m, retain: 24"), r"stores\[0\]\.retain: 24 is not a duration"),
        (with_fields("message: m, retain: 0s"), r"stores\[0\]\.retain: Input should be greater than"),
        (with_fields("message: m, owner: id"), r"stores\[0\]\.owner: unknown key"),
        (
            with_fields("message: m, readers: everyon"),
            r"stores\[0\]\.readers: 'everyon' is not supported; did",
        ),
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
        (f"stores: [{STORE[:-1]}, history: {{}}}}]", r"history: takes either versions or age"),
        (f"stores: [{STORE[:-1]}, history: {{versions: 2, age: 1m}}}}]", r"history: takes either versions or age"),
        (
            with_fields("message: json, format: plain, retain: 1h, history: {age: 2h}"),
            r"history\.age is above retain, .* lower it",
        ),
        (
            f"stores: [{STORE[:-1]}, readers: {{field: custmer_id}}}}]",
            r"readers\.field: statecast.orders.v1.Order has no text field 'custmer_id': did you mean customer_id\?",
        ),
        (
            f"stores: [{STORE[:-1]}, private: [{{path: item, owner: customer_id}}]}}]",
            r"private\[0\]: statecast.orders.v1.Order has no field 'item': did you mean items\?",
        ),
        (with_fields("message: bytes, format: plain, readers: everyone"), r"message `bytes` is shown to nobody"),
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


@pytest.mark.parametrize("name", [".", "..", "lock", SET_ASIDE, UNFINISHED, CHECKPOINTS])
def test_a_store_on_disk_has_no_name_that_the_data_directory_has_for_other_things(tmp_path: Path, name: str) -> None:
    path, fields = tmp_path / "stores.yaml", f"name: {name}, topic: a, message: json, format: plain"
    path.write_text(f"stores: [{{{fields}}}]")

    with pytest.raises(
        StoresFileError, match=rf"stores\[0\]\.name `{re.escape(name)}` is no name of a store's directory"
    ):
        read_stores(path)
    path.write_text(f"stores: [{{{fields}, engine: memory}}]")
    assert [store.name for store in read_stores(path)] == [name]


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(StoresFileError, match=r"none\.yaml: cannot be read: No such file"):
        read_stores(tmp_path / "none.yaml")


def test_a_store_can_hold_a_mounted_message(tmp_path: Path) -> None:
    (tmp_path / "shipment.proto").write_text('syntax = "proto3"; package acme; message Shipment { string owner = 1; }')
    path = tmp_path / "stores.yaml"
    path.write_text(with_fields("message: acme.Shipment, readers: {field: owner}"))
    types = MessageTypes.read(tmp_path)

    assert [store.message for store in read_stores(path, types)] == ["acme.Shipment"]
    with pytest.raises(StoresFileError, match=r"`acme\.Shipment` is not in the contract, nor mounted"):
        read_stores(path)
    path.write_text(with_fields("message: acme.Shipment, readers: {field: ownr}"))
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
