"""What this instance knows."""

import pytest

from query_service.cluster.shard_map import Member, ShardMap
from query_service.cluster.view import View
from query_service.errors import NotServedError, UnknownStoreError

STORE = "orders-by-key"


def test_an_unknown_store_is_named_with_the_nearest(view: View) -> None:
    with pytest.raises(UnknownStoreError, match="did you mean `orders-by-key`"):
        view.topic("orders-by-kye")


def test_a_store_whose_topic_is_not_described_is_not_served_yet(view: View) -> None:
    view.topics = {}

    with pytest.raises(NotServedError, match="the topic `topic`"):
        view.topic(STORE)
    assert view.wanted() == frozenset()


def test_a_partition_that_is_not_held_or_not_caught_up_is_not_served(view: View) -> None:
    with pytest.raises(NotServedError, match="does not hold"):
        view.host(STORE, 0)


def test_it_wants_the_partitions_in_whose_first_ranks_it_stands(view: View) -> None:
    other = Member("query-2", "h:1", "h:2", 1)
    view.shard_map = ShardMap(frozenset({view.me, other}), 1)
    mine = view.wanted()
    view.shard_map = ShardMap(frozenset({view.me, other}), 2)

    assert 0 < len(mine) < 4
    assert view.wanted() == {(STORE, partition) for partition in range(4)}
