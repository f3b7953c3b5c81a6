"""A replica that lags behind the others is asked after them."""

import pytest

from query_service.cluster.shard_map import Member, ShardMap
from query_service.cluster.view import View
from query_service.reads.route import Preference
from query_service.storage.progress import Freshness
from statecast.query.v1 import query_pb2
from testkit.query_service import FakePeers, FakeReads, ManualClock, OpenReplica, preference_of

SHARD = ("orders-by-key", 0)
OTHERS = [Member(f"query-{number}", f"h:{number}", f"s:{number}", 1) for number in (2, 3, 4)]


class Cluster:
    """Three peers, of which the first two by rank hold the partition, as an instance sees them that holds nothing."""

    def __init__(self, view: View, clock: ManualClock) -> None:
        view.shard_map = ShardMap(frozenset(OTHERS), 2)
        self.view = view
        self.peers = FakePeers({member: FakeReads(member.instance) for member in OTHERS}, clock)
        self.ranked = view.shard_map.ranked(*SHARD)
        self.preference: Preference = preference_of(view, self.peers.of)

    def lag(self, *seconds: float | None) -> None:
        """Lets the holders say how far they are behind, by rank; None serves nothing."""
        for member, lag_s in zip(self.ranked, seconds, strict=False):
            fresh = Freshness(0, 0, int((lag_s or 0) * 1000), 77, 5, member.instance)
            self.peers.of(member).held = {SHARD: (lag_s is not None, fresh)}

    @property
    def ranks(self) -> list[int]:
        """The ranks in the order in which they are asked."""
        return self.ranks_within(None)

    def ranks_within(self, max_lag_ms: int | None) -> list[int]:
        """Returns the ranks in the order in which a query with this bound asks them."""
        order = self.preference.order(SHARD, query_pb2.Bounds(max_lag_ms=max_lag_ms))
        return [self.ranked.index(member) + 1 for member in order]


@pytest.fixture
def cluster(view: View, clock: ManualClock) -> Cluster:
    return Cluster(view, clock)


def test_a_holder_that_lags_more_than_the_bound_is_asked_after_the_other_holder(cluster: Cluster) -> None:
    cluster.lag(9.0, 0.1)
    below = cluster.ranks
    cluster.lag(3600.0, 0.1)

    assert below == [1, 2, 3]
    assert cluster.ranks == [2, 1, 3]


def test_a_query_with_a_bound_asks_those_first_that_meet_it(cluster: Cluster) -> None:
    cluster.lag(0.9, 0.1)

    assert cluster.ranks_within(500) == [2, 1, 3]
    assert cluster.ranks_within(1000) == [1, 2, 3]
    assert cluster.ranks_within(50) == [1, 2, 3], "none meets it"
    cluster.lag(0.9, None)
    assert cluster.ranks_within(500) == [1, 2, 3], "none is known to meet it"


def test_it_has_its_rank_back_below_the_lower_bound_and_not_before(cluster: Cluster) -> None:
    cluster.lag(11.0, 0.1)
    orders = [cluster.ranks]
    for lag_s in (5.0, 2.0, 9.0, 11.0):
        cluster.lag(lag_s, 0.1)
        orders.append(cluster.ranks)

    assert orders == [[2, 1, 3], [2, 1, 3], [1, 2, 3], [1, 2, 3], [2, 1, 3]]


def test_when_all_lag_alike_nothing_changes(cluster: Cluster) -> None:
    cluster.lag(3600.0, 3595.0)

    assert cluster.ranks == [1, 2, 3]


def test_one_that_is_demoted_stays_so_while_nothing_is_known_of_it(cluster: Cluster) -> None:
    cluster.lag(11.0, 0.1)
    orders = [cluster.ranks]
    cluster.lag(None, 0.1)
    orders.append(cluster.ranks)
    cluster.lag(0.1, 0.1)

    assert orders == [[2, 1, 3], [2, 1, 3]]
    assert cluster.ranks == [1, 2, 3]


def test_a_replica_that_is_alone_keeps_its_place(cluster: Cluster) -> None:
    cluster.lag(3600.0, None)

    assert cluster.ranks == [1, 2, 3]


async def test_the_own_replica_counts_as_it_is_now(view: View, clock: ManualClock, open_replica: OpenReplica) -> None:
    other = Member("query-2", "h:2", "s:2", 1)
    view.shard_map = ShardMap(frozenset({view.me, other}), 2)
    view.replicas[SHARD] = open_replica(0)
    peers = FakePeers({other: FakeReads("query-2")}, clock)
    preference = preference_of(view, peers.of)
    peers.of(other).held = {SHARD: (True, Freshness(0, 0, 100, 77, 5, "query-2"))}
    view.replicas[SHARD].note_end_offset(1000, clock.now)
    clock.now += 60

    assert preference.order(SHARD) == (other, view.me)
