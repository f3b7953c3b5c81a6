"""Effects of a connector's transforms on changes."""

from collections.abc import Mapping

import pytest

from statecast_onboarding.doctor.connector_checks import CONNECTOR_CLASS, check_config
from statecast_onboarding.doctor.transform_checks import check_transforms

KAFKA, DEBEZIUM = "org.apache.kafka.connect.transforms", "io.debezium.transforms"
ROUTED = {"transforms": "r", "transforms.r.type": f"{KAFKA}.RegexRouter"}


def levels(config: Mapping[str, str]) -> list[tuple[str, str]]:
    return [(each.level, each.subject) for each in check_transforms(config)]


@pytest.mark.parametrize(
    ("kind", "level"),
    [
        (f"{DEBEZIUM}.ExtractNewRecordState", "FAIL"),
        (f"{DEBEZIUM}.outbox.EventRouter", "FAIL"),
        (f"{DEBEZIUM}.Filter", "FAIL"),
        (f"{DEBEZIUM}.partitions.PartitionRouting", "FAIL"),
        (f"{KAFKA}.Filter", "FAIL"),
        (f"{KAFKA}.HoistField$Value", "FAIL"),
        (f"{KAFKA}.Flatten$Value", "FAIL"),
        (f"{KAFKA}.TimestampConverter$Value", "FAIL"),
        (f"{KAFKA}.ReplaceField$Value", "FAIL"),
        (f"{KAFKA}.MaskField$Value", "FAIL"),
        (f"{KAFKA}.ValueToKey", "FAIL"),
        ("org.example.Mine", "WARN"),
    ],
)
def test_a_transform_that_changes_rows_is_named(kind: str, level: str) -> None:
    assert levels({"transforms": "t", "transforms.t.type": kind}) == [(level, "transforms.t.type")]


def test_what_names_topics_or_headers_alone_does_no_harm() -> None:
    headers = {"transforms": "r, h", "transforms.h.type": f"{KAFKA}.HeaderFrom$Value"}

    assert not levels({**ROUTED, **headers})
    assert not levels({"transforms.t.type": f"{DEBEZIUM}.ExtractNewRecordState"})  # nobody calls it


def test_a_filter_of_tombstones_is_no_filter_of_changes() -> None:
    config = {
        "transforms": "f",
        "transforms.f.type": f"{KAFKA}.Filter",
        "transforms.f.predicate": "p",
        "predicates.p.type": f"{KAFKA}.predicates.RecordIsTombstone",
    }

    assert levels(config) == [("WARN", "transforms.f.type")]
    assert levels({**config, "transforms.f.negate": "true"}) == [("FAIL", "transforms.f.type")]


@pytest.mark.parametrize(
    ("regex", "replacement", "merges"),
    [
        (r"shop\.public\.(.*)", "$1", False),
        (r"shop\.(.*)\.orders", "orders", True),
        (r"shop\.(.*)\.(orders)", "$2", True),
        (r"(", "orders", False),
        (r"shop\.(.*)\.orders", "$7", False),
    ],
)
def test_tables_that_a_router_sends_to_one_topic_are_found(regex: str, replacement: str, merges: bool) -> None:
    config = {
        "connector.class": CONNECTOR_CLASS,
        "topic.prefix": "shop",
        "table.include.list": "public.orders,archive.orders",
        **ROUTED,
        "transforms.r.regex": regex,
        "transforms.r.replacement": replacement,
    }
    texts = [each.text for each in check_config(config, [], []) if each.subject == "transforms"]

    assert bool(texts) == merges
    assert not texts or "shop.public.orders, shop.archive.orders to one topic, orders" in texts[0]
