"""Peers are told the changes since they last asked, and everything when the changes are not known."""

import pytest

from query_service.cluster.view import View
from query_service.server.partition_listing import Listed, PartitionListing
from query_service.storage.replica import Replica
from statecast.shard.v1 import shard_service_pb2 as shard
from testkit.query_service import ManualClock, put

STORE = "orders-by-key"


class Peer:
    """Asks an instance for its partitions, as often as a test wants."""

    def __init__(self, view: View) -> None:
        self.listing = PartitionListing(view)
        self.listed = Listed()

    def ask(self) -> shard.ListPartitionsResponse:
        answer = shard.ListPartitionsResponse.FromString(self.listing.answer(self.listed.version).SerializeToString())
        self.listed = self.listed.after(answer)
        return answer


def whole(view: View) -> Listed:
    """Returns the listing for a peer that asks for the first time, without the version."""
    listed = Listed().after(PartitionListing(view).answer(b""))
    return Listed(b"", listed.held, listed.misplaced)


def numbers(answer: shard.ListPartitionsResponse) -> list[int]:
    return [each.freshness.partition for each in answer.partitions]


def test_the_partitions_are_listed_in_order(serving_view: View) -> None:
    own = PartitionListing(serving_view).answer(b"").partitions

    assert [(each.store, each.freshness.partition, each.serving) for each in own] == [
        (STORE, partition, True) for partition in range(4)
    ]


@pytest.fixture
def peer(serving_view: View) -> Peer:
    return Peer(serving_view)


async def test_at_rest_nothing_is_told_twice(peer: Peer, serving_view: View) -> None:
    assert numbers(peer.ask()) == [0, 1, 2, 3]

    assert numbers(peer.ask()) == []
    assert peer.listed.held == whole(serving_view).held


async def test_a_partition_that_has_changed_is_told_alone(peer: Peer, serving_view: View) -> None:
    peer.ask()
    serving_view.replicas[STORE, 1].apply([put("a", 1, 0)], 1)
    serving_view.replicas[STORE, 2].progress.serving = False

    assert numbers(peer.ask()) == [1, 2]
    assert peer.listed.held == whole(serving_view).held
    assert numbers(peer.ask()) == []


async def test_a_lag_that_is_usual_is_told_for_all_together_and_a_larger_one_each_time(
    peer: Peer, serving_view: View, clock: ManualClock
) -> None:
    peer.ask()
    clock.now += 0.5
    answer = peer.ask()

    assert (numbers(answer), answer.untold_lag_ms) == ([], 501)
    assert [freshness.lag_ms for _, freshness in peer.listed.held.values()] == [501] * 4

    clock.now += 5
    for partition in range(3):
        serving_view.replicas[STORE, partition].note_end_offset(0, clock.now)
    for _ in range(2):
        answer = peer.ask()

        assert (numbers(answer), answer.untold_lag_ms) == ([3], 1)
        assert peer.listed.held == whole(serving_view).held


async def test_all_is_told_after_a_partition_has_gone(peer: Peer, serving_view: View) -> None:
    peer.ask()
    gone: Replica = serving_view.replicas.pop((STORE, 0))
    gone.store.close()

    assert numbers(peer.ask()) == [1, 2, 3]
    assert peer.listed.held == whole(serving_view).held
    assert numbers(peer.ask()) == []


async def test_all_is_told_to_who_knows_a_version_of_another_process_or_none(peer: Peer, serving_view: View) -> None:
    peer.ask()
    restarted = PartitionListing(serving_view)
    for version in (peer.listed.version, b"", b"?", b"x" * 100):
        answer = restarted.answer(version)

        assert (numbers(answer), answer.changes_only) == ([0, 1, 2, 3], False)


async def test_an_older_build_tells_all_each_time(peer: Peer, serving_view: View) -> None:
    peer.ask()
    serving_view.replicas.pop((STORE, 0)).store.close()
    answer = PartitionListing(serving_view).answer(b"")
    answer.ClearField("version")
    peer.listed = peer.listed.after(answer)

    assert peer.listed == whole(serving_view)


async def test_misplaced_groups_are_kept_until_they_change(peer: Peer, serving_view: View) -> None:
    replica = serving_view.replicas[STORE, 1]
    replica.store.misplaced = frozenset({b"a", b"b\x001\x00m"})
    peer.ask()

    assert peer.listed.misplaced == {(STORE, 1, replica.topic.epoch): ["a", "b"]}

    serving_view.replicas[STORE, 2].apply([put("c", 1, 0)], 1)
    peer.ask()

    assert peer.listed.misplaced == {(STORE, 1, replica.topic.epoch): ["a", "b"]}

    replica.store.misplaced = frozenset()
    peer.ask()

    assert peer.listed.misplaced == {}
