"""Which instance holds which partition, and which members have left but may still answer."""

from dataclasses import replace

from query_service.cluster.shard_map import Member, MemberTracker, ShardMap, newest_of_each


def member(number: int, started_ms: int = 1) -> Member:
    return Member(f"query-{number}", f"10.0.0.{number}:50051", f"10.0.0.{number}:50061", started_ms)


PARTITIONS = [("orders-by-key", partition) for partition in range(200)]


def test_a_member_survives_the_way_through_its_client_id() -> None:
    renamed = replace(member(1, 17), topics=(("a", "a.g2"), ("b", "c")))

    assert Member.from_client_id(member(1, 17).client_id()) == member(1, 17)
    again = Member.from_client_id(renamed.client_id())
    assert again == renamed == member(1, 17)
    assert again.topics == renamed.topics


def test_a_member_that_has_more_topics_now_counts_as_that() -> None:
    more = replace(member(1), topics=(("a", "a.g2"),))
    [newest] = newest_of_each([more, member(1)])

    assert newest.topics == more.topics


def test_a_map_is_another_when_a_member_has_other_topics() -> None:
    tracker = MemberTracker(member(1), 2, 30)
    before = tracker.update(frozenset([member(1), member(2)]), 0)
    tracker.set_stores({}, {"a": "a.g2"})
    more = [replace(each, topics=(("a", "a.g2"),)) for each in (member(1), member(2))]

    assert tracker.update(frozenset([more[0], member(2)]), 1).holders("a", 0) == (member(1),)
    assert set(tracker.update(frozenset(more), 2).holders("a", 0)) == {member(1), member(2)}
    assert before.holders("a", 0) != ()


def test_a_client_that_is_no_instance_is_not_a_member() -> None:
    assert Member.from_client_id("rdkafka") is None
    assert Member.from_client_id("a|b|c|soon|") is None


def test_every_instance_ranks_alike() -> None:
    one = ShardMap(frozenset([member(1), member(2), member(3)]), 2)
    other = ShardMap(frozenset([member(3), member(1), member(2)]), 2)

    assert [one.ranked(*key) for key in PARTITIONS] == [other.ranked(*key) for key in PARTITIONS]


def test_the_share_of_each_member_is_about_equal() -> None:
    shard_map = ShardMap(frozenset([member(1), member(2)]), 1)
    owned = sum(shard_map.holders(*key)[0] == member(1) for key in PARTITIONS)

    assert 60 <= owned <= 140


def test_a_new_member_takes_partitions_and_moves_no_others() -> None:
    before = ShardMap(frozenset([member(1), member(2)]), 1)
    after = ShardMap(frozenset([member(1), member(2), member(3)]), 1)
    moved = [key for key in PARTITIONS if before.holders(*key) != after.holders(*key)]

    assert moved
    assert all(after.holders(*key) == (member(3),) for key in moved)


def test_the_owner_before_is_the_next_in_rank() -> None:
    before = ShardMap(frozenset([member(1), member(2)]), 1)
    after = ShardMap(frozenset([member(1), member(2), member(3)]), 1)

    for key in PARTITIONS:
        if after.holders(*key) == (member(3),):
            assert after.ranked(*key)[1] == before.holders(*key)[0]


def test_fewer_members_than_replicas_all_hold() -> None:
    assert ShardMap(frozenset([member(1)]), 2).holders("orders-by-key", 0) == (member(1),)


def test_departed_members_rank_last_and_hold_nothing() -> None:
    shard_map = ShardMap(frozenset([member(1)]), 2, departed=frozenset([member(2)]))

    for key in PARTITIONS:
        assert shard_map.ranked(*key) == (member(1), member(2))
        assert shard_map.holders(*key) == (member(1),)


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


def test_a_map_that_follows_from_another_is_the_one_that_is_made_anew() -> None:
    topics = {"rows": "rows.g2"}
    everyone = [replace(member(number), topics=tuple(topics.items()) if number % 3 else ()) for number in range(9)]
    places = [(store, partition) for store in ("rows", "few", "others") for partition in range(40)]
    memberships = [everyone[:1], everyone[:6], everyone[2:], [replace(everyone[2], started_ms=9), *everyone[4:]]]
    before = None
    for members in memberships:
        shard_map = ShardMap(frozenset(members), 2, of_store={"few": 1}, topics=topics)
        anew = replace(shard_map, _holders={}, _ranks={})
        followed = shard_map if before is None else shard_map.after(before)

        assert [followed.holders(*key) for key in places] == [anew.holders(*key) for key in places]
        assert all(anew.ranked(*key)[: len(anew.holders(*key))] == anew.holders(*key) for key in places)
        before = followed


ME = Member("query-1", "h:1", "h:2", 10)
OTHER = Member("query-2", "h:3", "h:4", 10)


def test_before_it_has_joined_nothing_is_owned() -> None:
    tracker = MemberTracker(ME, 2, 30)

    assert tracker.update(frozenset({OTHER}), 0).members == frozenset()
    assert not tracker.joined


def test_once_joined_it_stays_in_its_own_map() -> None:
    tracker = MemberTracker(ME, 2, 30)
    tracker.update(frozenset({ME, OTHER}), 0)

    assert tracker.update(frozenset({OTHER}), 1).members == {ME, OTHER}


def test_an_empty_list_says_nothing() -> None:
    tracker = MemberTracker(ME, 2, 30)
    before = tracker.update(frozenset({ME, OTHER}), 0)

    assert tracker.update(frozenset(), 1) == before


def test_a_member_that_leaves_is_still_asked_for_a_while() -> None:
    tracker = MemberTracker(ME, 2, 30)
    tracker.update(frozenset({ME, OTHER}), 0)

    assert tracker.update(frozenset({ME}), 1).departed == {OTHER}
    assert tracker.update(frozenset({ME}), 30).departed == {OTHER}
    assert tracker.update(frozenset({ME}), 31).departed == frozenset()


def test_a_member_that_comes_back_under_its_name_is_no_longer_departed() -> None:
    tracker = MemberTracker(ME, 2, 30)
    tracker.update(frozenset({ME, OTHER}), 0)
    tracker.update(frozenset({ME}), 1)
    back = Member("query-2", "h:5", "h:6", 20)
    shard_map = tracker.update(frozenset({ME, back}), 2)

    assert shard_map.members == {ME, back}
    assert shard_map.departed == frozenset()


def test_when_it_leaves_the_others_hold_everything() -> None:
    tracker = MemberTracker(ME, 2, 30)
    tracker.update(frozenset({ME, OTHER}), 0)

    assert tracker.leave().holders("s", 0) == (OTHER,)
    assert tracker.leave().ranked("s", 0) == (OTHER, ME)


def test_the_maps_know_the_stores_with_another_number_of_replicas() -> None:
    me, other = Member("query-1", "h:1", "h:2", 1), Member("query-2", "h:3", "h:4", 1)
    tracker = MemberTracker(me, 1, 30, {"wide": 2})
    shard_map = tracker.update(frozenset({me, other}), 0)

    assert len(shard_map.holders("wide", 0)) == 2
    assert len(shard_map.holders("narrow", 0)) == 1
    assert tracker.leave().of_store == {"wide": 2}
