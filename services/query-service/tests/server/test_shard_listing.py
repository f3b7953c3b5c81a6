"""Which instances serve each shard, and how fresh each of them is."""

import asyncio
from typing import Any, get_args

import pytest
import yaml
from typing_extensions import override

from query_service.cluster.shard_map import Member, ShardMap, StorePartition
from query_service.cluster.view import View
from query_service.errors import NotServedError, UnknownStoreError
from query_service.server.shard_listing import ShardListing, listed
from query_service.storage.progress import Freshness
from query_service.storage.stores_file import StoreDefinition
from statecast.partitioning import PARTITIONERS
from statecast.query.v1 import query_pb2
from testkit.query_service import FakePeers, FakeReads, ManualClock, preference_of, store_definition

STORE = "orders-by-key"
OTHER = Member("query-2", "h:1", "h:2", 1)


@pytest.fixture
def peers(clock: ManualClock) -> FakePeers:
    """One peer, which serves partition 0 alone."""
    peers = FakePeers({OTHER: FakeReads("query-2")}, clock)
    peers.of(OTHER).held = {(STORE, 0): (True, Freshness(0, 3, 9, 77, 5, "query-2"))}
    return peers


@pytest.fixture
async def listing(serving_view: View, peers: FakePeers, clock: ManualClock) -> ShardListing:
    serving_view.shard_map = ShardMap(frozenset({serving_view.me, OTHER}), 2)
    return ShardListing(serving_view, preference_of(serving_view, peers.of), clock)


async def test_each_partition_names_its_replicas_by_rank(listing: ShardListing) -> None:
    answer = await listing.shards(STORE)

    assert [(store.store, store.topic, store.partitions) for store in answer.stores] == [(STORE, "topic", 4)]
    assert [shard.partition for shard in answer.shards] == [0, 1, 2, 3]
    for shard in answer.shards:
        assert [replica.rank for replica in shard.replicas] == [1, 2]
        assert {replica.instance for replica in shard.replicas} == {"query-1", "query-2"}


async def test_a_replica_tells_its_own_lag(listing: ShardListing) -> None:
    replicas = {replica.instance: replica for replica in (await listing.shards("")).shards[0].replicas}

    assert (replicas["query-2"].serving, replicas["query-2"].lag_records, replicas["query-2"].lag_ms) == (True, 3, 9)
    assert replicas["query-1"].serving
    assert replicas["query-1"].current_through.epoch == 77


async def test_a_replica_that_holds_nothing_yet_or_does_not_answer_has_no_lag(listing: ShardListing) -> None:
    replicas = {replica.instance: replica for replica in (await listing.shards("")).shards[1].replicas}

    assert (replicas["query-2"].serving, replicas["query-2"].lag_records, replicas["query-2"].lag_ms) == (False, -1, -1)
    assert not replicas["query-2"].HasField("current_through")


async def test_a_replica_that_lags_behind_another_one_is_listed_after_it(
    listing: ShardListing, peers: FakePeers, clock: ManualClock
) -> None:
    shards = (await listing.shards(STORE)).shards
    owned = next(each.partition for each in shards if each.replicas[0].instance == "query-2")
    clock.now += 1

    peers.of(OTHER).held = {(STORE, owned): (True, Freshness(owned, 5000, 3_600_000, 77, 5, "query-2"))}
    replicas = (await listing.shards(STORE)).shards[owned].replicas

    assert [(replica.instance, replica.rank) for replica in replicas] == [("query-1", 1), ("query-2", 2)]


async def test_who_has_the_map_gets_no_more_than_its_version_until_another_replica_is_to_be_asked(
    listing: ShardListing, peers: FakePeers, clock: ManualClock
) -> None:
    version = (await listing.shards("")).version
    clock.now += 1
    peers.of(OTHER).held = {(STORE, 0): (True, Freshness(0, 4, 20, 77, 5, "query-2"))}
    unchanged = await listing.shards("", version)
    clock.now += 1
    peers.of(OTHER).held = {}
    changed = await listing.shards("", version)

    assert unchanged.version == version
    assert not unchanged.shards
    assert changed.version != version
    assert len(changed.shards) == 4


async def test_outside_of_the_group_there_is_no_map(listing: ShardListing, serving_view: View) -> None:
    serving_view.shard_map = ShardMap(frozenset(), 2)

    with pytest.raises(NotServedError, match="has not joined the group yet"):
        await listing.shards("")


async def test_a_store_that_there_is_not_is_named(listing: ShardListing) -> None:
    with pytest.raises(UnknownStoreError, match="did you mean"):
        await listing.shards("orders")


async def test_a_store_without_its_topic_stands_apart_in_the_list_of_all(
    listing: ShardListing, serving_view: View, clock: ManualClock
) -> None:
    version = (await listing.shards("")).version
    serving_view.topics = {}
    clock.now += 1
    answer = await listing.shards("", version)

    assert not answer.stores
    assert [(store.store, store.partitions) for store in answer.without_topic] == [(STORE, 0)]
    assert answer.without_topic[0].readers == query_pb2.READERS_STAFF
    with pytest.raises(NotServedError):
        await listing.shards(STORE)


READERS = {
    "staff": (query_pb2.READERS_STAFF, "", False),
    "everyone": (query_pb2.READERS_EVERYONE, "", False),
    "{field: customer}": (query_pb2.READERS_OWNER, "customer", False),
    "{field: customer, group: true}": (query_pb2.READERS_OWNER, "customer", True),
}


@pytest.mark.parametrize(("readers", "expected"), READERS.items())
def test_a_store_says_who_may_read_it(readers: str, expected: tuple[object, ...]) -> None:
    store = listed(store_definition(readers=yaml.safe_load(readers)))

    assert (store.readers, store.owner, store.group_is_owner) == expected


def test_a_store_says_all_that_an_edge_must_know() -> None:
    private = [{"path": "deal.hands", "owner": "player"}, {"path": "stake", "owner": "customer"}]
    chosen = {"keeps": "members", "description": "Games.", "interval": "5s", "private": private}
    store, other = listed(store_definition(**chosen)), listed(store_definition())

    assert [([*each.path], each.owner) for each in store.private_fields] == [
        (["deal", "hands"], "player"),
        (["stake"], "customer"),
    ]
    assert (store.members, store.description, store.interval_ms) == (True, "Games.", 5000)
    assert (other.members, other.description, other.interval_ms) == (False, "", 0)


async def test_a_change_of_rights_is_another_version(
    listing: ShardListing, serving_view: View, clock: ManualClock
) -> None:
    version = (await listing.shards("")).version
    definition = serving_view.store(STORE)
    serving_view.stores = {STORE: definition.model_copy(update={"readers": "everyone"})}
    clock.now += 1
    answer = await listing.shards("", version)

    assert [store.readers for store in answer.stores] == [query_pb2.READERS_EVERYONE]


async def test_a_new_store_is_listed_at_once(listing: ShardListing, serving_view: View) -> None:
    version = (await listing.shards("")).version
    serving_view.stores = {**serving_view.stores, "new": store_definition(name="new", topic="topic")}

    assert {store.store for store in (await listing.shards("", version)).stores} == {STORE, "new"}


async def test_a_listing_is_not_kept_for_longer_because_other_work_goes_on_while_it_is_made(
    listing: ShardListing, peers: FakePeers, clock: ManualClock
) -> None:
    class SlowlyRead(dict[StorePartition, tuple[bool, Freshness]]):
        @override
        def get(self, key: StorePartition, default: Any = None) -> Any:
            clock.now += 10
            return super().get(key, default)

    peers.of(OTHER).held = SlowlyRead(peers.of(OTHER).held)
    version = (await listing.shards("")).version
    peers.of(OTHER).held = {}
    clock.now += 1

    assert (await listing.shards("", version)).version != version


async def test_a_store_says_how_its_groups_are_spread(listing: ShardListing, serving_view: View) -> None:
    plain = {
        "message": "json",
        "format": "plain",
        "partitioner": "crc32",
        "history": {"age": "1h"},
    }
    definition = StoreDefinition.model_validate({"name": STORE, "topic": "topic", **plain})
    serving_view.stores[STORE] = definition
    (store,) = (await listing.shards(STORE)).stores

    assert (store.message, store.history) == ("json", True)
    assert store.partitioner == query_pb2.PARTITIONER_CRC32


def test_every_partitioner_has_a_name_in_the_contract() -> None:
    named = {name.removeprefix("PARTITIONER_").lower() for name, _ in query_pb2.Partitioner.items()}
    choices = get_args(StoreDefinition.model_fields["partitioner"].annotation)

    assert {*choices} == {*PARTITIONERS} == named - {"unspecified"}


async def test_a_caller_who_asked_too_early_and_left_spoils_nothing_for_the_next(
    listing: ShardListing, serving_view: View
) -> None:
    stores, serving_view.stores = serving_view.stores, {}
    left = asyncio.create_task(listing.shards(STORE))
    await asyncio.sleep(0)
    left.cancel()
    await asyncio.gather(left, return_exceptions=True)
    await asyncio.sleep(0)
    serving_view.stores = stores

    assert (await listing.shards(STORE)).stores[0].store == STORE
