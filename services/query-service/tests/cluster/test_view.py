"""An instance's view of the cluster, and the thread that changes it."""

import asyncio
from threading import Thread, get_ident

import pytest

from query_service.cluster.shard_map import Member, MemberTracker, ShardMap
from query_service.cluster.view import ClusterEvents, View
from query_service.errors import NotServedError, UnknownStoreError
from query_service.storage.progress import EndOffset
from query_service.storage.store_directory import Topic
from testkit.query_service import OpenReplica

STORE = "orders-by-key"


def test_an_unknown_store_is_named_with_the_nearest(view: View) -> None:
    with pytest.raises(UnknownStoreError, match="did you mean orders-by-key"):
        view.topic("orders-by-kye")


def test_a_store_whose_topic_is_not_described_is_not_served_yet(view: View) -> None:
    view.topics = {}

    with pytest.raises(NotServedError, match="the topic `topic`"):
        view.topic(STORE)
    assert view.assigned() == frozenset()


def test_a_partition_that_is_not_held_or_not_caught_up_is_not_served(view: View) -> None:
    with pytest.raises(NotServedError, match="does not hold"):
        view.replica(STORE, 0)


def test_the_partitions_in_whose_first_ranks_it_is_are_assigned_to_it(view: View) -> None:
    other = Member("query-2", "h:1", "h:2", 1)
    view.shard_map = ShardMap(frozenset({view.me, other}), 1)
    mine = view.assigned()
    view.shard_map = ShardMap(frozenset({view.me, other}), 2)

    assert 0 < len(mine) < 4
    assert view.assigned() == {(STORE, partition) for partition in range(4)}


async def test_only_the_event_loop_changes_the_view_whatever_thread_the_events_come_from(
    view: View, open_replica: OpenReplica
) -> None:
    view.topics, view.shard_map = {}, ShardMap(frozenset(), 2)
    view.replicas[STORE, 0] = replica = open_replica(0, serving=False)
    changed_in: list[int] = []
    tracker = MemberTracker(view.me, 2, 30)
    events = ClusterEvents(asyncio.get_running_loop(), view, tracker, lambda: changed_in.append(get_ident()))

    def report() -> None:
        events.members(frozenset({view.me}))
        events.topics({"topic": Topic("topic", "id", 77, 4)})
        events.end_offsets({("topic", 0): EndOffset(7, 1.0), ("topic", 3): EndOffset(9, 1.0)})

    reporter = Thread(target=report)
    reporter.start()
    reporter.join()
    assert (view.shard_map.members, view.topics, view.end_offsets) == (frozenset(), {}, {})
    assert (replica.progress.end_offset, changed_in) == (None, [])
    await asyncio.sleep(0)

    assert changed_in == [get_ident()] * 2, "of the members and of the topics"
    assert view.assigned() == {(STORE, partition) for partition in range(4)}
    assert view.end_offsets["topic", 3] == EndOffset(9, 1.0)
    assert replica.progress.end_offset == 7


async def test_the_end_offsets_of_a_topic_that_was_made_anew_are_dropped(view: View) -> None:
    events = ClusterEvents(asyncio.get_running_loop(), view, MemberTracker(view.me, 2, 30), lambda: None)
    other = Topic("other", "id", 77, 1)
    events.topics({"topic": view.topics["topic"], "other": other})
    events.end_offsets({("topic", 0): EndOffset(1000, 1.0), ("other", 0): EndOffset(5, 1.0)})
    events.topics({"topic": Topic("topic", "another", 78, 4), "other": other})
    await asyncio.sleep(0)

    assert view.end_offsets == {("other", 0): EndOffset(5, 1.0)}
