"""Who is in, and who left but may still answer."""

from query_service.cluster.roster import Roster
from query_service.cluster.shard_map import Member

ME = Member("query-1", "h:1", "h:2", 10)
OTHER = Member("query-2", "h:3", "h:4", 10)


def test_before_it_has_joined_nothing_is_owned() -> None:
    roster = Roster(ME, 2, 30)

    assert roster.update(frozenset({OTHER}), 0).members == frozenset()
    assert not roster.joined


def test_once_joined_it_stays_in_its_own_map() -> None:
    roster = Roster(ME, 2, 30)
    roster.update(frozenset({ME, OTHER}), 0)

    assert roster.update(frozenset({OTHER}), 1).members == {ME, OTHER}


def test_an_empty_list_says_nothing() -> None:
    roster = Roster(ME, 2, 30)
    before = roster.update(frozenset({ME, OTHER}), 0)

    assert roster.update(frozenset(), 1) == before


def test_who_leaves_is_still_asked_for_a_while() -> None:
    roster = Roster(ME, 2, 30)
    roster.update(frozenset({ME, OTHER}), 0)

    assert roster.update(frozenset({ME}), 1).departed == {OTHER}
    assert roster.update(frozenset({ME}), 30).departed == {OTHER}
    assert roster.update(frozenset({ME}), 31).departed == frozenset()


def test_who_comes_back_under_its_name_is_no_longer_departed() -> None:
    roster = Roster(ME, 2, 30)
    roster.update(frozenset({ME, OTHER}), 0)
    roster.update(frozenset({ME}), 1)
    back = Member("query-2", "h:5", "h:6", 20)
    shard_map = roster.update(frozenset({ME, back}), 2)

    assert shard_map.members == {ME, back}
    assert shard_map.departed == frozenset()


def test_when_it_leaves_the_others_hold_everything() -> None:
    roster = Roster(ME, 2, 30)
    roster.update(frozenset({ME, OTHER}), 0)

    assert roster.leave().holders("s", 0) == (OTHER,)
    assert roster.leave().ranked("s", 0) == (OTHER, ME)


def test_the_maps_know_the_stores_with_another_number_of_replicas() -> None:
    me, other = Member("query-1", "h:1", "h:2", 1), Member("query-2", "h:3", "h:4", 1)
    roster = Roster(me, 1, 30, {"wide": 2})
    shard_map = roster.update(frozenset({me, other}), 0)

    assert len(shard_map.holders("wide", 0)) == 2
    assert len(shard_map.holders("narrow", 0)) == 1
    assert roster.leave().of_store == {"wide": 2}
