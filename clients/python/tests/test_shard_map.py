"""The shard map says which instances to ask for a group, in which order."""

import json
from pathlib import Path
from typing import Any

import pytest

from statecast.query.v1 import query_pb2
from statecast.query.v1 import query_service_pb2 as query
from statecast_client.shard_map import FailedAddresses, ShardMap, group_by_owner, hash_group

# Made by BuiltInPartitioner.partitionForKey and Utils.murmur2 of kafka-clients 4.3.1, over the group part of each key.
VECTORS: list[dict[str, Any]] = json.loads(Path(__file__).with_name("partition_vectors.json").read_text())
STORE = query_pb2.Store(store="rows", partitions=2)


def listing(*replicas: tuple[str, int, bool]) -> query.ListShardsResponse:
    """Returns a listing in which every partition has the same replicas."""
    shards = [query_pb2.Shard(store="rows", partition=partition) for partition in range(2)]
    for shard in shards:
        for address, rank, serving in replicas:
            shard.replicas.add(address=address, rank=rank, serving=serving)
    return query.ListShardsResponse(stores=[STORE], shards=shards)


class Clock:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_replicas_are_asked_by_rank_and_those_that_do_not_serve_last() -> None:
    shards = ShardMap.of(listing(("c:1", 3, True), ("a:1", 1, False), ("b:1", 2, True)))

    assert shards.replicas("rows", hash_group("x")) == ("b:1", "c:1", "a:1")
    assert shards.addresses == ("a:1", "b:1", "c:1")


@pytest.mark.parametrize(
    ("partitioner", "hash_index"), [(query_pb2.PARTITIONER_MURMUR2, 0), (query_pb2.PARTITIONER_CRC32, 1)]
)
def test_a_group_is_asked_for_where_the_partitioner_of_its_store_puts_it(
    partitioner: query_pb2.Partitioner.ValueType, hash_index: int
) -> None:
    response = listing(("a:1", 1, True))
    response.stores[0].partitioner = partitioner
    response.shards[1].replicas[0].address = "b:1"
    shards = ShardMap.of(response)

    for group in ("x", "y", "z", "order-1", "order-2"):
        partition = hash_group(group)[hash_index] % 2
        assert shards.partition("rows", hash_group(group)) == partition
        assert shards.replicas("rows", hash_group(group)) == (("a:1", "b:1")[partition],)


def test_an_unknown_store_and_no_group_have_no_replicas() -> None:
    shards = ShardMap.of(listing(("a:1", 1, True)))

    assert shards.replicas("others", hash_group("x")) == ()
    assert shards.replicas("rows", None) == ()
    assert ShardMap().replicas("rows", hash_group("x")) == ()
    assert ShardMap.of(query.ListShardsResponse(stores=[STORE])).replicas("rows", hash_group("x")) == ()
    assert ShardMap().partition("rows", hash_group("x")) is None


def test_the_first_candidate_is_chosen() -> None:
    assert FailedAddresses(1.0, Clock()).choose(["a", "b", "x"]) == "a"


def test_a_failed_address_is_passed_over_until_the_backoff_is_over() -> None:
    clock = Clock()
    failed = FailedAddresses(1.0, clock)
    failed.add("a")

    assert failed.choose(["a", "b"]) == "b"
    clock.now += 1.0
    assert failed.choose(["a", "b"]) == "a"


def test_an_answer_ends_the_backoff() -> None:
    failed = FailedAddresses(1.0, Clock())
    failed.add("a")
    failed.discard("a")

    assert failed.choose(["a", "b"]) == "a"
    assert "a" not in failed


def test_when_all_have_failed_the_first_is_tried_again() -> None:
    failed = FailedAddresses(1.0, Clock())
    for address in ("a", "b", "x"):
        failed.add(address)

    assert failed.choose(["a", "b", "x"]) == "a"


def test_the_address_that_was_just_tried_is_chosen_again_only_when_it_is_the_only_one() -> None:
    failed = FailedAddresses(0.0, Clock())

    assert failed.choose(["a", "b"], tried="a") == "b"
    assert failed.choose(["a"], tried="a") == "a"


def test_only_the_first_failure_of_an_outage_is_reported_as_such() -> None:
    failed = FailedAddresses(1.0, Clock())

    assert [failed.add("a"), failed.add("a")] == [True, False]
    failed.discard("a")
    assert failed.add("a")


def test_items_are_grouped_by_owner_within_the_limit() -> None:
    assert group_by_owner(["a", "b", "a", "a"], 2) == [[0, 2], [3], [1]]


def partition_of(store: query_pb2.Store, group: str) -> int | None:
    return ShardMap.of(query.ListShardsResponse(stores=[store])).partition(store.store, hash_group(group))


@pytest.mark.parametrize("vector", VECTORS, ids=range(len(VECTORS)))
def test_hash_and_partition_of_a_group_are_kafkas(vector: dict[str, Any]) -> None:
    assert hash_group(vector["group"])[0] == vector["murmur2"] & 0x7FFFFFFF
    for partitions, expected in vector["partitions"].items():
        store = query_pb2.Store(partitions=int(partitions), partitioner=query_pb2.PARTITIONER_MURMUR2)
        assert partition_of(store, vector["group"]) == expected


def test_all_members_of_a_group_are_in_its_partition() -> None:
    members = [vector for vector in VECTORS if vector.get("member") and vector["group"] == "customer-0001"]
    alone = next(vector for vector in VECTORS if vector["group"] == "customer-0001" and "member" not in vector)

    assert len(members) == 2
    assert all(member["partitions"] == alone["partitions"] for member in members)


def test_a_store_without_a_partitioner_is_spread_by_murmur2() -> None:
    assert partition_of(query_pb2.Store(partitions=4), "customer-0001") == 3


def test_a_store_with_librdkafkas_default_is_spread_by_crc32() -> None:
    store = query_pb2.Store(partitions=1000, partitioner=query_pb2.PARTITIONER_CRC32)

    assert partition_of(store, "123456789") == 0xCBF43926 % 1000


def test_a_store_of_saramas_producers_is_spread_by_fnv1a() -> None:
    store = query_pb2.Store(partitions=1000, partitioner=query_pb2.PARTITIONER_FNV1A)

    assert partition_of(store, "foobar") == (2**32 - 0xBF9CF968) % 1000
    store.partitioner = query_pb2.PARTITIONER_FNV1A_REFERENCE
    assert partition_of(store, "foobar") == (0xBF9CF968 & 0x7FFFFFFF) % 1000


def test_an_unknown_partitioner_is_not_guessed() -> None:
    store = query_pb2.Store(partitions=4)
    store.partitioner = 99  # type: ignore[assignment]

    assert partition_of(store, "a") is None
