"""Who serves what."""

from dataclasses import replace

from query_service.cluster.shard_map import Member, ShardMap, newest_of_each


def member(number: int, started_ms: int = 1) -> Member:
    return Member(f"query-{number}", f"10.0.0.{number}:50051", f"10.0.0.{number}:50061", started_ms)


PLACES = [("orders-by-key", partition) for partition in range(200)]


def test_a_member_survives_the_way_through_its_client_id() -> None:
    renamed = replace(member(1, 17), topics=(("a", "a.g2"), ("b", "c")))

    assert Member.from_client_id(member(1, 17).client_id()) == member(1, 17)
    assert Member.from_client_id(renamed.client_id()) == renamed


def test_a_client_that_is_no_instance_is_not_a_member() -> None:
    assert Member.from_client_id("rdkafka") is None
    assert Member.from_client_id("a|b|c|soon|") is None


def test_every_instance_ranks_alike() -> None:
    one = ShardMap(frozenset([member(1), member(2), member(3)]), 2)
    other = ShardMap(frozenset([member(3), member(1), member(2)]), 2)

    assert [one.ranked(*place) for place in PLACES] == [other.ranked(*place) for place in PLACES]


def test_the_share_of_each_member_is_about_equal() -> None:
    shard_map = ShardMap(frozenset([member(1), member(2)]), 1)
    owned = sum(shard_map.holders(*place)[0] == member(1) for place in PLACES)

    assert 60 <= owned <= 140


def test_a_new_member_takes_partitions_and_moves_no_others() -> None:
    before = ShardMap(frozenset([member(1), member(2)]), 1)
    after = ShardMap(frozenset([member(1), member(2), member(3)]), 1)
    moved = [place for place in PLACES if before.holders(*place) != after.holders(*place)]

    assert moved
    assert all(after.holders(*place) == (member(3),) for place in moved)


def test_the_owner_before_is_the_next_in_rank() -> None:
    before = ShardMap(frozenset([member(1), member(2)]), 1)
    after = ShardMap(frozenset([member(1), member(2), member(3)]), 1)

    for place in PLACES:
        if after.holders(*place) == (member(3),):
            assert after.ranked(*place)[1] == before.holders(*place)[0]


def test_fewer_members_than_replicas_all_hold() -> None:
    assert ShardMap(frozenset([member(1)]), 2).holders("orders-by-key", 0) == (member(1),)


def test_departed_members_rank_last_and_hold_nothing() -> None:
    shard_map = ShardMap(frozenset([member(1)]), 2, departed=frozenset([member(2)]))

    for place in PLACES:
        assert shard_map.ranked(*place) == (member(1), member(2))
        assert shard_map.holders(*place) == (member(1),)


def test_a_restarted_instance_replaces_its_dead_self() -> None:
    assert newest_of_each([member(1, 20), member(1, 10), member(2, 5)]) == {member(1, 20), member(2, 5)}


def test_a_store_may_have_another_number_of_replicas() -> None:
    shard_map = ShardMap(frozenset(map(member, range(4))), 2, of_store={"few": 1, "many": 3})

    assert [len(shard_map.holders(store, 0)) for store in ("few", "other", "many")] == [1, 2, 3]


def test_two_generations_of_a_store_are_held_apart_and_other_stores_together() -> None:
    topics = {"rows": "rows.g2"}
    new = [replace(member(number), topics=tuple(topics.items())) for number in (1, 2)]
    old = [member(number) for number in (3, 4)]
    everyone = frozenset([*new, *old])
    of_new = ShardMap(everyone, 3, departed=frozenset([member(5)]), topics=topics)
    of_old = ShardMap(everyone, 3, departed=frozenset([member(5)]))

    for partition in range(20):
        assert set(of_new.holders("rows", partition)) == set(of_new.ranked("rows", partition)) == set(new)
        assert set(of_old.holders("rows", partition)) == set(old)
        assert of_old.ranked("rows", partition)[2:] == (member(5),)
        assert of_new.holders("others", partition) == of_old.holders("others", partition)
