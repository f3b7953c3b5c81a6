"""The stores file is checked against the contract before anything starts."""

from pathlib import Path

import pytest

from statecast.orders.v1.order_pb2 import Order
from statecast_service.errors import SettingsError
from ws_edge.authorization import OwnerRule
from ws_edge.errors import MalformedFrameError, UnknownStoreError
from ws_edge.states import RangeKey, StoreKey
from ws_edge.stores import SHIPPED, find, read_stores

SORT = "2024-08-28T12:34:56.123456Z"


def test_the_shipped_stores_are_those_of_the_orders_pipelines() -> None:
    stores = read_stores(SHIPPED)

    assert set(stores) == {"orders-by-key", "orders-by-customer", "orders-by-item"}
    assert all(store.message is Order for store in stores.values())
    assert stores["orders-by-key"].rule == OwnerRule("customer_id")
    assert stores["orders-by-customer"].rule == OwnerRule("customer_id", group=True)
    assert stores["orders-by-item"].rule == OwnerRule(None)
    assert [store.members for store in stores.values()] == [False, True, True]


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
