"""The edge and the query service must mean the same by a store."""

from pathlib import Path

import pytest

from statecast.query.v1 import query_pb2
from ws_edge.channels import EDGE_STORES
from ws_edge.stores import SHIPPED, Stores, read_stores
from ws_edge.upstream.agreement import disagreement

ORDER = "statecast.orders.v1.Order"


def listed(store: str = "orders-by-key", message: str = ORDER, **fields: object) -> query_pb2.Store:
    return query_pb2.Store(store=store, topic=store, message=message, partitions=4, **fields)  # type: ignore[arg-type]


def stores_with(owner: str, directory: Path) -> Stores:
    file = directory / "stores.yaml"
    file.write_text(f"stores: [{{name: orders-by-key, message: {ORDER}, keeps: one, owner: {owner}}}]")
    return read_stores(file)


def test_the_shipped_files_agree() -> None:
    names = ("orders-by-key", "orders-by-customer", "orders-by-item")

    assert disagreement(read_stores(SHIPPED), (), [listed(name, owner="customer_id") for name in names]) is None


@pytest.mark.parametrize("owner", ["everyone", "{field: order_id}"])
def test_a_store_whose_rows_would_be_shown_to_others_than_their_owner_is_named(owner: str, tmp_path: Path) -> None:
    difference = disagreement(stores_with(owner, tmp_path), (), [listed(owner="customer_id")])

    assert "the owner in the store orders-by-key is customer_id at the query service" in str(difference)


@pytest.mark.parametrize("owner", ["staff", "{field: customer_id}"])
def test_the_same_owner_and_staff_alone_are_fine(owner: str, tmp_path: Path) -> None:
    assert disagreement(stores_with(owner, tmp_path), (), [listed(owner="customer_id")]) is None


def test_who_says_nothing_of_owners_disagrees_with_nobody(tmp_path: Path) -> None:
    assert disagreement(stores_with("everyone", tmp_path), (), [listed()]) is None


def test_a_store_of_other_rows_is_named() -> None:
    difference = disagreement(read_stores(SHIPPED), (), [listed(message="statecast.bookings.v1.Booking")])

    assert "holds statecast.bookings.v1.Booking at the query service" in str(difference)


def test_the_edges_own_stores_must_be_spread_as_edges_write_them() -> None:
    channels = listed("push-channels", "statecast.push.v1.ChannelRecord", partitioner=query_pb2.PARTITIONER_CRC32)

    assert "push-channels has the partitioner crc32" in str(disagreement(EDGE_STORES, EDGE_STORES, [channels]))


def test_a_store_that_the_edge_does_not_have_is_not_compared() -> None:
    assert disagreement(read_stores(SHIPPED), (), [listed("others", "json", owner="x")]) is None
