"""Whom to ask for a group."""

from statecast.query.v1 import query_pb2
from statecast.query.v1 import query_service_pb2 as query
from statecast_client.partitioning import partition_of
from statecast_client.shard_map import ShardMap

STORE = query_pb2.Store(store="rows", partitions=2)


def listing(*replicas: tuple[str, int, bool]) -> query.ListShardsResponse:
    """A listing in which every partition has the same replicas."""
    shards = [query_pb2.Shard(store="rows", partition=partition) for partition in range(2)]
    for shard in shards:
        for address, rank, serving in replicas:
            shard.replicas.add(address=address, rank=rank, serving=serving)
    return query.ListShardsResponse(stores=[STORE], shards=shards)


def test_the_owner_comes_first_and_who_does_not_serve_last() -> None:
    shards = ShardMap.of(listing(("c:1", 3, True), ("a:1", 1, False), ("b:1", 2, True)))

    assert shards.candidates("rows", "x") == ("b:1", "c:1", "a:1")
    assert shards.instances() == ("a:1", "b:1", "c:1")


def test_each_group_has_the_holders_of_its_partition() -> None:
    response = listing(("a:1", 1, True))
    response.shards[1].replicas[0].address = "b:1"
    shards = ShardMap.of(response)

    for group in ("x", "y", "z", "order-1"):
        assert shards.candidates("rows", group) == (("a:1", "b:1")[partition_of(STORE, group) or 0],)


def test_nobody_is_known_for_other_stores_and_for_no_group() -> None:
    shards = ShardMap.of(listing(("a:1", 1, True)))

    assert shards.candidates("others", "x") == ()
    assert shards.candidates("rows", "") == ()
    assert ShardMap().candidates("rows", "x") == ()
