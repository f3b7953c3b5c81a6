"""Which replica a lookup asks first, and which next."""

from dataclasses import replace

import pytest

from query_service.cluster.shard_map import Member, ShardMap
from query_service.cluster.view import View
from query_service.errors import (
    AbsentError,
    BoundsError,
    InvalidRequestError,
    LookupFailedError,
    MisplacedKeyError,
    NotServedError,
    TimedOutError,
    UnreachableError,
)
from query_service.metrics import Metrics
from query_service.reads import Reads
from query_service.reads.dispatch import Dispatch
from query_service.reads.hedge import Hedging
from query_service.storage.progress import Freshness
from statecast.query.v1 import query_pb2
from testkit.query_service import FakePeers, FakeReads, ManualClock, OpenReplica, freshness_of_get, preference_of

SHARD = ("orders-by-key", 0)
OTHERS = [Member(f"query-{number}", f"h:{number}", f"s:{number}", 1) for number in (2, 3)]


class Cluster:
    """Three instances; the one that routes is one of them, at any rank."""

    def __init__(self, view: View, metrics: Metrics, clock: ManualClock) -> None:
        view.shard_map = ShardMap(frozenset({view.me, *OTHERS}), 2)
        self.view = view
        self.clock = clock
        self.local = FakeReads(view.me.instance)
        self.peers = FakePeers({member: FakeReads(member.instance, forwarded=True) for member in OTHERS}, clock)
        hedging = Hedging(5.0, 5.0, 0.1, metrics, clock)
        order = preference_of(view, self.peers.of)
        self.dispatch = Dispatch(view, self.local, self.peers.of, order, hedging, 0.5, metrics, clock)

    def lookup(self, rank: int) -> FakeReads:
        """Returns the lookup of the member at this rank."""
        member = self.view.shard_map.ranked(*SHARD)[rank - 1]
        return self.local if member == self.view.me else self.peers.reads[member]

    async def answered_by(self, seconds: float = 10) -> str:
        result = await self.dispatch.first_answer(SHARD, freshness_of_get, self.clock.now + seconds)
        assert result.forwarded == (result.answered_by != self.view.me.instance)
        return result.answered_by

    @property
    def calls(self) -> list[int]:
        """The number of calls to each rank."""
        return [len(self.lookup(rank).deadlines) for rank in (1, 2, 3)]


@pytest.fixture
def cluster(view: View, metrics: Metrics, clock: ManualClock) -> Cluster:
    return Cluster(view, metrics, clock)


async def test_the_owner_is_asked_and_nobody_else(cluster: Cluster) -> None:
    assert await cluster.answered_by() == cluster.lookup(1).answered_by
    assert cluster.calls == [1, 0, 0]


@pytest.mark.parametrize("failure", [NotServedError("still reading"), UnreachableError("gone"), BoundsError("behind")])
async def test_the_next_replica_answers_when_the_owner_does_not(cluster: Cluster, failure: LookupFailedError) -> None:
    cluster.lookup(1).failure = failure

    assert await cluster.answered_by() == cluster.lookup(2).answered_by


async def test_members_beyond_the_replicas_are_asked_last(cluster: Cluster) -> None:
    cluster.lookup(1).failure = UnreachableError("gone")
    cluster.lookup(2).failure = NotServedError("still reading")

    assert await cluster.answered_by() == cluster.lookup(3).answered_by


@pytest.mark.parametrize(
    "failure",
    [
        AbsentError("nothing", query_pb2.Absence(), query_pb2.Freshness()),
        InvalidRequestError("page_token: wrong"),
        MisplacedKeyError("not looked up"),
    ],
)
async def test_an_absence_or_a_refusal_ends_the_search(cluster: Cluster, failure: LookupFailedError) -> None:
    cluster.lookup(1).failure = failure

    with pytest.raises(type(failure)):
        await cluster.answered_by()

    assert cluster.calls == [1, 0, 0]


async def test_a_bounded_query_does_not_wait_for_the_own_replica_that_lags(
    cluster: Cluster, clock: ManualClock, open_replica: OpenReplica
) -> None:
    shard_map, me = cluster.view.shard_map, cluster.view.me
    shard = next(shard for number in range(64) if me in shard_map.holders(*(shard := (SHARD[0], number))))
    cluster.view.replicas[shard] = open_replica(shard[1])
    clock.now += 0.9
    [other] = [member for member in shard_map.holders(*shard) if member != me]
    fresh = Freshness(shard[1], 0, 100, 77, 5, other.instance)
    cluster.peers.of(other).held = {shard: (True, fresh)}
    result = await cluster.dispatch.first_answer(
        shard, freshness_of_get, clock.now + 10, bounds=query_pb2.Bounds(max_lag_ms=500)
    )

    assert result.answered_by == other.instance
    assert cluster.local.deadlines == []


async def test_when_all_are_behind_the_owner_gets_the_rest_of_the_time(cluster: Cluster) -> None:
    for rank in (1, 2, 3):
        cluster.lookup(rank).failure = BoundsError("behind")

    with pytest.raises(BoundsError):
        await cluster.answered_by(10)

    assert cluster.calls == [2, 1, 1]
    assert cluster.lookup(1).deadlines == [cluster.clock.now + 0.5, cluster.clock.now + 10]


async def test_while_one_is_behind_a_holder_that_was_silent_is_asked_again(cluster: Cluster) -> None:
    silent = cluster.lookup(1)
    silent.failure = UnreachableError("no answer in time")
    cluster.lookup(2).failure = BoundsError("behind")
    cluster.lookup(3).failure = NotServedError("not held")

    async def heals(reads: Reads, until: float) -> query_pb2.Freshness:
        if silent.deadlines:
            silent.failure = None
        return await freshness_of_get(reads, until)

    result = await cluster.dispatch.first_answer(SHARD, heals, cluster.clock.now + 10)

    assert result.answered_by == silent.answered_by
    assert silent.deadlines == [cluster.clock.now + 0.5] * 2


async def test_a_replica_gets_only_part_of_the_time_while_others_are_left(cluster: Cluster) -> None:
    for rank in (1, 2):
        cluster.lookup(rank).failure = NotServedError("still reading")
    await cluster.answered_by(0.6)

    assert cluster.lookup(1).deadlines == [pytest.approx(cluster.clock.now + 0.3)]
    assert cluster.lookup(3).deadlines == [cluster.clock.now + 0.6]


async def test_a_replica_that_failed_lately_is_asked_last(cluster: Cluster) -> None:
    dead = next(member for member in cluster.view.shard_map.ranked(*SHARD) if member != cluster.view.me)
    cluster.peers.of(dead).failed(None)
    cluster.peers.reads[dead].failure = UnreachableError("gone")
    for _ in range(5):
        await cluster.answered_by()

    assert cluster.peers.reads[dead].deadlines == []


@pytest.mark.parametrize(("seconds", "unreachable"), [(0.1, False), (10, True)])
async def test_a_peer_that_had_little_time_is_not_taken_for_dead(
    cluster: Cluster, seconds: float, unreachable: bool
) -> None:
    slow = next(member for member in cluster.view.shard_map.ranked(*SHARD) if member != cluster.view.me)
    cluster.local.failure = NotServedError("still reading")
    cluster.peers.reads[slow].failure = TimedOutError("no answer in time")
    await cluster.answered_by(seconds)

    assert cluster.peers.of(slow).unreachable is unreachable


async def test_when_nobody_serves_a_second_round_is_tried_and_then_it_says_so(cluster: Cluster) -> None:
    for rank in (1, 2, 3):
        cluster.lookup(rank).failure = NotServedError(f"rank {rank} is still reading")

    with pytest.raises(NotServedError, match="is still reading"):
        await cluster.answered_by()

    assert cluster.calls == [2, 2, 2]


async def test_before_it_has_joined_it_says_so(cluster: Cluster) -> None:
    cluster.view.shard_map = ShardMap(frozenset(), 2)

    with pytest.raises(NotServedError, match="has not joined the group yet"):
        await cluster.answered_by()


async def test_a_peer_without_a_feature_is_not_asked_for_what_needs_it(cluster: Cluster) -> None:
    knowing = replace(OTHERS[1], features=frozenset({"FEATURE_GROUP_WINDOWS"}))
    cluster.view.shard_map = ShardMap(frozenset({OTHERS[0], knowing}), 2)
    needs = frozenset({"FEATURE_GROUP_WINDOWS"})
    answer = await cluster.dispatch.first_answer(SHARD, freshness_of_get, cluster.clock.now + 10, needs=needs)

    assert answer.answered_by == knowing.instance
    assert cluster.peers.reads[OTHERS[0]].deadlines == []


async def test_a_read_that_no_replica_can_do_names_the_one_to_upgrade(cluster: Cluster) -> None:
    cluster.view.shard_map = ShardMap(frozenset(OTHERS), 2)
    with pytest.raises(NotServedError, match=r"query-[23] is of an older release, without FEATURE_LATER: upgrade it"):
        await cluster.dispatch.first_answer(
            SHARD, freshness_of_get, cluster.clock.now, needs=frozenset({"FEATURE_LATER"})
        )

    assert all(cluster.peers.reads[each].deadlines == [] for each in OTHERS)
