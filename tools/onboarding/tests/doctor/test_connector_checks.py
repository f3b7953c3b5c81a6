"""Problems that are found in a connector's configuration."""

import json
from collections.abc import Mapping

import pytest

from statecast_onboarding.connector_file import JSON_CONVERTER, connector
from statecast_onboarding.doctor.connector_checks import (
    BINLOG_CLASSES,
    CONNECTOR_CLASS,
    check_config,
    check_sources,
    table_of,
)

SOUND = {
    "connector.class": CONNECTOR_CLASS,
    "plugin.name": "pgoutput",
    "table.include.list": "public.orders",
    "skipped.operations": "none",
    "key.converter": JSON_CONVERTER,
    "key.converter.replace.null.with.default": "false",
    "value.converter": JSON_CONVERTER,
    "value.converter.replace.null.with.default": "false",
    "interval.handling.mode": "string",
    "decimal.handling.mode": "string",
}


def levels(config: Mapping[str, str], compacted: tuple[str, ...] = ()) -> set[tuple[str, str]]:
    return {(each.level, each.subject) for each in check_config(config, ["public.orders"], compacted)}


def test_what_import_writes_does_not_fail() -> None:
    config = json.loads(connector("postgres://shop@db/shop", "public.orders", "shop.public.orders", None))

    assert levels(config) == levels(SOUND) == {("ok", "decimal.handling.mode")}


@pytest.mark.parametrize(
    ("changed", "finding"),
    [
        ({"connector.class": "io.debezium.connector.sqlserver.SqlServerConnector"}, ("FAIL", "connector.class")),
        ({"table.include.list": "public.customers"}, ("FAIL", "table.include.list")),
        ({"skipped.operations": "d,t"}, ("FAIL", "skipped.operations")),
        ({"skipped.operations": "t"}, ("WARN", "skipped.operations")),
        ({"value.converter": "io.confluent.connect.avro.AvroConverter"}, ("FAIL", "value.converter")),
        (
            {"decimal.handling.mode": "precise", "value.converter.schemas.enable": "false"},
            ("FAIL", "decimal.handling.mode"),
        ),
        ({"decimal.handling.mode": "double"}, ("WARN", "decimal.handling.mode")),
        ({"value.converter.schemas.enable": "false"}, ("WARN", "value.converter.schemas.enable")),
        ({"snapshot.mode": "no_data"}, ("WARN", "snapshot.mode")),
        ({"plugin.name": "wal2json"}, ("WARN", "plugin.name")),
        ({"column.exclude.list": "public.orders.note"}, ("WARN", "column.exclude.list")),
        ({"binary.handling.mode": "hex"}, ("FAIL", "binary.handling.mode")),
        ({"value.converter.replace.null.with.default": "true"}, ("FAIL", "value.converter.replace.null.with.default")),
        ({"key.converter.replace.null.with.default": "true"}, ("FAIL", "key.converter.replace.null.with.default")),
        ({"key.converter": "org.apache.kafka.connect.storage.StringConverter"}, ("WARN", "key.converter")),
        ({"unavailable.value.placeholder": "-"}, ("FAIL", "unavailable.value.placeholder")),
        ({"snapshot.mode": "initial_only"}, ("FAIL", "snapshot.mode")),
        ({"snapshot.mode": "always"}, ("WARN", "snapshot.mode")),
        ({"snapshot.include.collection.list": "public.a"}, ("WARN", "snapshot.include.collection.list")),
        ({"slot.drop.on.stop": "true"}, ("FAIL", "slot.drop.on.stop")),
        ({"flush.lsn.source": "false"}, ("WARN", "flush.lsn.source")),
        ({"errors.tolerance": "all"}, ("FAIL", "errors.tolerance")),
        ({"event.processing.failure.handling.mode": "skip"}, ("FAIL", "event.processing.failure.handling.mode")),
        ({"interval.handling.mode": "numeric"}, ("WARN", "interval.handling.mode")),
        ({"time.precision.mode": "connect"}, ("WARN", "time.precision.mode")),
        ({"time.precision.mode": "nanoseconds"}, ("WARN", "time.precision.mode")),
        ({"message.key.columns": "public.orders:shop"}, ("WARN", "message.key.columns")),
        ({"column.mask.hash.v2.SHA-256.with.salt.s": "a"}, ("WARN", "column.mask.hash.v2.SHA-256.with.salt.s")),
        ({"column.truncate.to.20.chars": "a"}, ("WARN", "column.truncate.to.20.chars")),
        ({"converters": "mine"}, ("WARN", "converters")),
        ({"post.processors": "reselector"}, ("WARN", "post.processors")),
        ({"heartbeat.interval.ms": "1000"}, ("WARN", "heartbeat.interval.ms")),
        ({"provide.transaction.metadata": "true"}, ("WARN", "provide.transaction.metadata")),
    ],
)
def test_each_mistake_is_found(changed: Mapping[str, str], finding: tuple[str, str]) -> None:
    assert finding in levels({**SOUND, **changed})


@pytest.mark.parametrize("name", ["key.converter", "value.converter"])
def test_settings_of_a_converter_that_the_connector_does_not_name_are_ignored_by_connect(name: str) -> None:
    config = {key: value for key, value in SOUND.items() if key != name}

    assert ("FAIL", f"{name}.replace.null.with.default") in levels(config)


def test_what_is_right_is_not_complained_about() -> None:
    right = {
        "value.converter.schemas.enable": "false",
        "time.precision.mode": "isostring",
    }

    assert levels({**SOUND, **right, "table.include.list": "public\\.orders"}) == {("ok", "decimal.handling.mode")}
    assert levels({**SOUND, **right, "table.include.list": "public.*"}) == {("ok", "decimal.handling.mode")}


@pytest.mark.parametrize("of_class", BINLOG_CLASSES)
def test_a_connector_for_a_binlog_must_stop_at_what_it_cannot_read(of_class: str) -> None:
    sound = {**SOUND, "connector.class": of_class}
    del sound["plugin.name"]

    assert levels(sound) == levels(SOUND)
    for name in ("inconsistent.schema.handling.mode", "event.deserialization.failure.handling.mode"):
        assert ("FAIL", name) in levels({**sound, name: "warn"})


def test_tombstones_are_needed_where_the_source_topic_is_compacted() -> None:
    config = {**SOUND, "tombstones.on.delete": "false"}

    assert ("WARN", "tombstones.on.delete") not in levels(config)
    assert ("WARN", "tombstones.on.delete") in levels(config, ("shop.public.orders",))


def test_a_source_under_another_prefix_is_one_that_nobody_writes() -> None:
    config = {"topic.prefix": "shop", "table.include.list": "public.orders, public\\.lines"}
    [finding] = check_sources(config, ["shop.public.lines", "old.public.orders", "elsewhere.public.customers"])

    assert (finding.level, finding.subject) == ("FAIL", "source old.public.orders")
    assert "the connector writes shop.public.orders" in finding.text


def test_topics_that_a_router_renames_are_not_compared() -> None:
    router = {"transforms.t.type": "org.apache.kafka.connect.transforms.RegexRouter"}
    config = {"topic.prefix": "shop", "table.include.list": "public.orders", **router}

    assert not list(check_sources(config, ["old.public.orders"]))


def test_a_table_is_known_by_its_topic_whose_name_has_fewer_signs() -> None:
    assert table_of("shop.public.Order_Items", {"table.include.list": "public.Order Items"}) == "public.Order Items"
    assert table_of("shop.public.orders", {}) == "public.orders"


@pytest.mark.parametrize("skipped", [{}, {"skipped.operations": "t"}])
def test_a_publication_of_some_operations_takes_no_further_table(skipped: Mapping[str, str]) -> None:
    config = {**SOUND, "publication.autocreate.mode": "filtered"}
    assert not [finding for finding in levels(config) if finding[1] == "skipped.operations"]
    del config["skipped.operations"]

    [text] = [each.text for each in check_config({**config, **skipped}, [], []) if each.subject == "skipped.operations"]
    assert "with another table no change of any arrives while Connect says RUNNING: set it to none" in text


def test_settings_of_the_worker_are_not_seen() -> None:
    config = {name: value for name, value in SOUND.items() if ".converter" not in name}

    assert {("WARN", "key.converter"), ("WARN", "value.converter")} < levels(config)


@pytest.mark.parametrize("kind", ["io.confluent.connect.avro.AvroConverter", "io.apicurio.ProtobufConverter"])
def test_formats_of_a_registry_are_named(kind: str) -> None:
    [finding] = [each for each in check_config({**SOUND, "value.converter": kind}, [], []) if each.level == "FAIL"]

    assert "records of a schema registry are not read yet" in finding.text
