"""What of a connector's configuration will not work."""

import json
from collections.abc import Mapping

import pytest

from statecast_onboarding.connector_file import connector
from statecast_onboarding.doctor.connector_checks import (
    BINLOG_CLASSES,
    CONNECTOR_CLASS,
    JSON_CONVERTER,
    check_config,
    check_sources,
    table_of,
)

SOUND = {
    "connector.class": CONNECTOR_CLASS,
    "plugin.name": "pgoutput",
    "table.include.list": "public.orders",
    "value.converter": JSON_CONVERTER,
    "decimal.handling.mode": "string",
}


def levels(config: Mapping[str, str], compacted: tuple[str, ...] = ()) -> set[tuple[str, str]]:
    return {(each.level, each.subject) for each in check_config(config, ["public.orders"], compacted)}


def test_what_import_writes_does_not_fail() -> None:
    config = json.loads(connector("postgres://shop@db/shop", "public.orders", "shop.public.orders", None))

    assert {level for level, _ in levels(config)} == {"ok", "WARN"}
    assert levels(config) == levels(SOUND)


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
        ({"transforms.u.type": "io.debezium.transforms.ExtractNewRecordState"}, ("WARN", "transforms")),
    ],
)
def test_each_mistake_is_found(changed: Mapping[str, str], finding: tuple[str, str]) -> None:
    assert finding in levels({**SOUND, **changed})


def test_what_is_right_is_not_complained_about() -> None:
    right = {
        "skipped.operations": "none",
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
