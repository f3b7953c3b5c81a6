"""Partitions are opened by the shard map, and let go of only when others serve them."""

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial

import pytest

from query_service.cluster.peer_memory import Shard
from query_service.cluster.placement import Placement
from query_service.cluster.shard_map import Member, ShardMap
from query_service.cluster.view import Topic, View
from query_service.errors import StoreFailedError
from query_service.storage.partition_host import PartitionHost

STORE = "orders-by-key"
OpenHost = Callable[..., PartitionHost]
OTHER = Member("query-2", "h:1", "h:2", 1)


class FakeFactory:
    """Opens hosts by a function, or fails."""

    def __init__(self, open_host: OpenHost) -> None:
        self.open_host = open_host
        self.failure: StoreFailedError | None = None

    def open(self, store: str, topic: Topic, partition: int, end: tuple[int, float]) -> PartitionHost:
        if self.failure:
            raise self.failure
        return self.open_host(partition)


class FakeChangelog:
    """Remembers whom it follows."""

    def __init__(self) -> None:
        self.followed: list[int] = []

    def follow(self, host: PartitionHost) -> None:
        self.followed.append(host.place.partition)

    def unfollow(self, host: PartitionHost) -> "Future[None]":
        self.followed.remove(host.place.partition)
        host.store.close()
        done: Future[None] = Future()
        done.set_result(None)
        return done


class Scene:
    """A placement whose peers serve what the test says."""

    def __init__(self, view: View, open_host: OpenHost) -> None:
        self.view = view
        self.factory = FakeFactory(open_host)
        self.changelog = FakeChangelog()
        self.served: frozenset[Shard] = frozenset()
        self.ends = {("topic", partition): (0, 0.0) for partition in range(4)}
        self.placement = Placement(view, self.factory, self.changelog, self.ends, self.served_by)

    async def served_by(self, member: Member) -> frozenset[Shard]:
        assert member == OTHER
        return self.served

    @property
    def held(self) -> set[int]:
        return {partition for _, partition in self.view.hosts}


@pytest.fixture
async def scene(view: View, open_host: OpenHost) -> Scene:
    return Scene(view, partial(open_host, loop=asyncio.get_running_loop()))


async def test_it_holds_what_the_shard_map_gives_it(scene: Scene) -> None:
    await scene.placement.settle()

    assert scene.held == set(scene.changelog.followed) == {0, 1, 2, 3}
    assert scene.placement.settled


async def test_before_it_has_joined_it_holds_nothing(scene: Scene) -> None:
    scene.view.shard_map = ShardMap(frozenset(), 2)
    await scene.placement.settle()

    assert scene.held == set()
    assert not scene.placement.settled


async def test_a_partition_whose_end_is_not_known_yet_waits(scene: Scene) -> None:
    del scene.ends["topic", 2]
    await scene.placement.settle()

    assert scene.held == {0, 1, 3}
    assert not scene.placement.settled


async def test_a_disk_that_refuses_is_tried_again(scene: Scene) -> None:
    scene.factory.failure = StoreFailedError("No space left on device")
    await scene.placement.settle()
    assert scene.held == set()

    scene.factory.failure = None
    await scene.placement.settle()

    assert scene.held == {0, 1, 2, 3}


async def test_a_partition_that_moves_away_is_kept_until_its_new_holder_serves_it(scene: Scene) -> None:
    await scene.placement.settle()
    scene.view.shard_map = ShardMap(frozenset({scene.view.me, OTHER}), 1)
    mine = {partition for _, partition in scene.view.wanted()}
    await scene.placement.settle()
    assert scene.held == {0, 1, 2, 3}

    scene.served = frozenset((STORE, partition) for partition in range(4) if partition != min({0, 1, 2, 3} - mine))
    await scene.placement.settle()
    assert scene.held == mine | {min({0, 1, 2, 3} - mine)}

    scene.served = frozenset((STORE, partition) for partition in range(4))
    await scene.placement.settle()

    assert scene.held == set(scene.changelog.followed) == mine
    assert await scene.placement.handed_over()


async def test_a_topic_that_was_made_anew_is_opened_anew(scene: Scene) -> None:
    await scene.placement.settle()
    before = dict(scene.view.hosts)
    scene.view.topics = {"topic": Topic("topic", "id", 77, 4)}
    await scene.placement.settle()
    assert scene.view.hosts == before

    scene.view.topics = {"topic": Topic("topic", "another", 78, 4)}
    await scene.placement.settle()

    assert scene.held == {0, 1, 2, 3}
    assert all(scene.view.hosts[shard] is not host for shard, host in before.items())
