"""Which instance holds which partition, and which members have left but may still answer."""

from dataclasses import replace
from random import Random

import pytest

from query_service.cluster.shard_map import Member, MemberTracker, ShardMap, newest_of_each


def member(number: int, started_ms: int = 1) -> Member:
    return Member(f"query-{number}", f"10.0.0.{number}:50051", f"10.0.0.{number}:50061", started_ms)


PARTITIONS = [("orders-by-key", partition) for partition in range(200)]


def test_a_client_id_is_short_and_another_one_for_other_topics() -> None:
    many = replace(member(1), topics=tuple((f"store-{each}", f"acme.store-{each}.g2") for each in range(100)))
    client_ids = {each.client_id for each in (member(1), many, replace(many, topics=many.topics[1:]))}

    assert len(client_ids) == 3
    assert all(len(each) < 100 for each in client_ids)
    assert {Member.from_client_id(each) for each in client_ids} == {member(1)}


def test_a_member_that_has_more_topics_now_counts_as_that() -> None:
    more = replace(member(1), topics=(("a", "a.g2"),))
    [newest] = newest_of_each([more, member(1)])

    assert newest.topics == more.topics


def test_a_map_is_another_when_a_member_has_other_topics() -> None:
    tracker = MemberTracker(member(1), 2, 30)
    before = tracker.update(frozenset([member(1), member(2)]), 0)
    tracker.set_stores({}, {"a": "a.g2"}, 0)
    more = [replace(each, topics=(("a", "a.g2"),)) for each in (member(1), member(2))]

    assert tracker.update(frozenset([more[0], member(2)]), 1).holders("a", 0) == (member(1),)
    assert set(tracker.update(frozenset(more), 2).holders("a", 0)) == {member(1), member(2)}
    assert before.holders("a", 0) != ()


def test_a_client_that_is_no_instance_is_not_a_member() -> None:
    assert Member.from_client_id("rdkafka") is None
    for started in ("soon", "²", "٣", "-1", "1 ", "9" * 5000):
        assert Member.from_client_id(f"a|b|c|{started}|") is None


def test_every_instance_ranks_alike() -> None:
    one = ShardMap(frozenset([member(1), member(2), member(3)]), 2)
    other = ShardMap(frozenset([member(3), member(1), member(2)]), 2)

    assert [one.ranked(*key) for key in PARTITIONS] == [other.ranked(*key) for key in PARTITIONS]


def test_the_share_of_each_member_is_about_equal() -> None:
    shard_map = ShardMap(frozenset([member(1), member(2)]), 1)
    owned = sum(shard_map.holders(*key)[0] == member(1) for key in PARTITIONS)

    assert 60 <= owned <= 140


def test_a_new_member_takes_partitions_of_owners_that_are_the_next_in_rank_then_and_moves_no_others() -> None:
    before = ShardMap(frozenset([member(1), member(2)]), 1)
    after = ShardMap(frozenset([member(1), member(2), member(3)]), 1)
    moved = [key for key in PARTITIONS if before.holders(*key) != after.holders(*key)]

    assert moved
    assert all(after.ranked(*key)[:2] == (member(3), *before.holders(*key)) for key in moved)


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


@pytest.mark.parametrize("zones", [(), "ab", "abc"])
def test_a_map_that_follows_from_another_is_the_one_that_is_made_anew(zones: str) -> None:
    topics = {"rows": "rows.g2"}
    everyone = [
        replace(each, topics=tuple(topics.items()) if each.started_ms % 3 else ())
        for each in (zoned(number, zones, started_ms=number + 1) for number in range(9))
    ]
    places = [(store, partition) for store in ("rows", "few", "others") for partition in range(40)]
    memberships = [everyone[:1], everyone[:6], everyone[2:], [replace(everyone[2], started_ms=9), *everyone[4:]]]
    before = None
    for members in memberships:
        shard_map = ShardMap(frozenset(members), 2, of_store={"few": 1, "others": 3}, topics=topics)
        anew = replace(shard_map, _holders={}, _ranks={}, _chosen={}, _readers={})
        followed = shard_map if before is None else shard_map.after(before)

        assert [followed.holders(*key) for key in places] == [anew.holders(*key) for key in places]
        assert all(anew.ranked(*key)[: len(anew.holders(*key))] == anew.holders(*key) for key in places)
        before = followed


def zoned(number: int, zones: str, started_ms: int = 1) -> Member:
    zone = zones[number % len(zones)] if zones else ""
    return replace(member(number, started_ms), zone=zone, version=1)


def moves(before: ShardMap, after: ShardMap) -> list[int]:
    """Returns how many holders of each partition are new."""
    return [len(set(after.holders(*key)) - set(before.holders(*key))) for key in PARTITIONS]


def test_fifty_instances_in_three_zones_hold_no_partition_twice_in_one() -> None:
    shard_map = ShardMap(frozenset(zoned(number, "abc") for number in range(50)), 2)

    assert all(len({each.zone for each in shard_map.holders(*key)}) == 2 for key in PARTITIONS)


@pytest.mark.parametrize("seed", range(30))
def test_replicas_are_in_as_many_zones_as_there_are_and_a_change_moves_one_of_each_partition_at_most(seed: int) -> None:
    random = Random(seed)
    zones = "abcde"[: random.randint(1, 5)]
    members = {replace(zoned(number, "a"), zone=random.choice(zones)) for number in range(random.randint(1, 24))}
    newcomer = replace(zoned(99, "a"), zone=random.choice(zones))
    replicas = random.randint(1, 4)
    before = ShardMap(frozenset(members), replicas)
    after = ShardMap(frozenset(members | {newcomer}), replicas)
    for shard_map in (before, after):
        in_zones = {each.zone for each in shard_map.members}
        for key in PARTITIONS:
            holders = shard_map.holders(*key)

            assert len(holders) == min(replicas, len(shard_map.members))
            assert len({each.zone for each in holders}) == min(len(holders), len(in_zones))
            assert sorted(shard_map.ranked(*key)) == sorted(shard_map.members)
            assert shard_map.ranked(*key)[: len(holders)] == holders

    assert max(moves(before, after)) <= 1, "one that comes takes the place of one"
    assert all(new <= {newcomer} for new in (set(after.holders(*k)) - set(before.holders(*k)) for k in PARTITIONS))
    assert max(moves(after, before)) <= 1, "one that goes is replaced by one"


ME = Member("query-1", "h:1", "h:2", 10)
OTHER = Member("query-2", "h:3", "h:4", 10)


def test_it_owns_nothing_before_it_has_joined_and_stays_in_its_own_map_then() -> None:
    tracker = MemberTracker(ME, 2, 30)

    assert tracker.update(frozenset({OTHER}), 0).members == frozenset()
    assert not tracker.joined
    joined = tracker.update(frozenset({ME, OTHER}), 0)
    assert tracker.update(frozenset(), 1) == joined, "an empty list says nothing"
    assert tracker.update(frozenset({OTHER}), 1).members == {ME, OTHER}


def test_a_member_that_leaves_is_still_asked_for_a_while_unless_it_comes_back_under_its_name() -> None:
    tracker = MemberTracker(ME, 2, 30)
    tracker.update(frozenset({ME, OTHER}), 0)

    assert tracker.update(frozenset({ME}), 1).departed == {OTHER}
    assert tracker.update(frozenset({ME}), 30).departed == {OTHER}
    back = replace(OTHER, address="h:5", shard_address="h:6", started_ms=20)
    returned = tracker.update(frozenset({ME, back}), 30)
    assert returned.members == {ME, back}
    assert returned.departed == frozenset()
    assert tracker.update(frozenset({ME}), 31).departed == {back}
    assert tracker.update(frozenset({ME}), 61).departed == frozenset()


THREE = [Member(f"query-{number}", f"h:{number}", f"s:{number}", 10, version=1) for number in (1, 2, 3)]


def patient(replicas: int = 2) -> tuple[MemberTracker, ShardMap]:
    """Returns a tracker that waits for a minute, and its map of three members."""
    tracker = MemberTracker(THREE[0], replicas, 30, replace_after_s=60)
    return tracker, tracker.update(frozenset(THREE), 0)


def test_nobody_copies_what_a_member_held_that_comes_back_in_time() -> None:
    tracker, before = patient()
    without = tracker.update(frozenset(THREE[:2]), 1)
    again = replace(THREE[2], started_ms=20)
    back = tracker.update(frozenset([*THREE[:2], again]), 50)

    assert max(moves(before, without)) == 0
    assert all(without.holders(*key) for key in PARTITIONS), "its other holder goes on"
    assert [[each.instance for each in back.holders(*key)] for key in PARTITIONS] == [
        [each.instance for each in before.holders(*key)] for key in PARTITIONS
    ]


def test_a_member_that_stays_away_is_replaced_in_the_end() -> None:
    tracker, _ = patient()
    tracker.update(frozenset(THREE[:2]), 1)

    assert tracker.at(60).absent == {THREE[2]}
    assert tracker.at(60).departed == frozenset()
    assert all(set(tracker.at(61).holders(*key)) == set(THREE[:2]) for key in PARTITIONS)


def test_what_an_absent_member_held_alone_is_taken_over_at_once() -> None:
    tracker, before = patient(replicas=1)
    without = tracker.update(frozenset(THREE[:2]), 1)
    alone = [key for key in PARTITIONS if before.holders(*key) == (THREE[2],)]

    assert alone
    assert all(without.holders(*key) and without.holders(*key)[0] in THREE[:2] for key in alone)


def test_when_it_leaves_the_others_hold_everything() -> None:
    tracker = MemberTracker(ME, 1, 30, {"wide": 2})
    joined = tracker.update(frozenset({ME, OTHER}), 0)
    left = tracker.leave(1)

    assert [len(joined.holders(store, 0)) for store in ("wide", "narrow")] == [2, 1]
    assert left.holders("wide", 0) == (OTHER,)
    assert left.ranked("wide", 0) == (OTHER, ME)
    assert left.of_store == {"wide": 2}
