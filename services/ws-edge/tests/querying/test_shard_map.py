"""The shard map says whom to ask, in which order."""

from ws_edge.querying.shard_map import ShardMap, order


def test_replicas_are_asked_by_rank_and_those_that_do_not_serve_last() -> None:
    assert order([(2, True, "b"), (1, False, "a"), (3, True, "c")]) == ("b", "c", "a")


def test_a_group_is_asked_for_where_its_partition_is() -> None:
    shards = ShardMap({"s": 2}, {("s", 0): ("a",), ("s", 1): ("b", "a")})

    assert shards.candidates("s", 7) == ("b", "a")
    assert shards.candidates("s", 8) == ("a",)
    assert shards.all_addresses() == {"a", "b"}


def test_what_the_map_does_not_know_has_no_candidates() -> None:
    assert ShardMap().candidates("s", 7) == ()
    assert ShardMap({"s": 2}, {}).candidates("s", 7) == ()
