"""Which replica is asked when a peer is slow, and how often two are."""

import asyncio
import random
from collections.abc import Callable, Iterator

import pytest

from query_service.cluster.shard_map import Member, ShardMap
from query_service.cluster.view import View
from query_service.errors import AbsentError, InvalidRequestError, NotServedError
from query_service.metrics import Metrics
from query_service.reads.dispatch import Dispatch
from query_service.reads.hedge import Hedging, SlowestResults
from statecast.query.v1 import query_pb2
from testkit.query_service import FakePeers, FakeReads, GatedReads, ManualClock, freshness_of_get, preference_of
from testkit.waiting import wait_until_async

SHARD = ("orders-by-key", 0)
OTHERS = [Member(f"query-{number}", f"h:{number}", f"s:{number}", 1) for number in (2, 3, 4)]


class Cluster:
    """Three peers that hold all partitions, and a router that holds none."""

    def __init__(
        self, view: View, metrics: Metrics, clock: ManualClock, share: float = 0.0, after_s: float = 0.001
    ) -> None:
        view.shard_map = ShardMap(frozenset(OTHERS), 2)
        lookups: dict[Member, FakeReads] = {member: GatedReads(member.instance) for member in OTHERS}
        self.peers = FakePeers(lookups, clock)
        self.ranked = view.shard_map.ranked(*SHARD)
        self.clock = clock
        self._metrics = metrics
        hedging = Hedging(after_s, 5.0, share, metrics, clock)
        nobody = FakeReads("nobody")
        order = preference_of(view, self.peers.of)
        self._dispatch = Dispatch(view, nobody, self.peers.of, order, hedging, 0.5, metrics, clock)

    def rank(self, rank: int) -> GatedReads:
        lookup = self.peers.reads[self.ranked[rank - 1]]
        assert isinstance(lookup, GatedReads)
        return lookup

    def peer_speaks(self) -> None:
        """The owner has just answered another caller."""
        self.clock.now += 1
        self.peers.of(self.ranked[0]).answered(None)

    async def answered_by(self, wait_s: float = 0.0) -> str:
        began = self.clock.now
        self.clock.now += 0.01
        result = await self._dispatch.first_answer(SHARD, freshness_of_get, began + 10, "get", wait_s)
        assert result.forwarded
        return result.answered_by

    async def until(self, condition: Callable[[], bool]) -> None:
        await wait_until_async(condition, "the expected calls were not made", 10, interval_s=0.001)

    async def racing(self) -> "asyncio.Task[str]":
        """Makes the first two silent, and asks until both are asked."""
        self.rank(1).gate.clear()
        self.rank(2).gate.clear()
        asking = asyncio.create_task(self.answered_by())
        await self.until(lambda: len(self.rank(2).deadlines) > 0)
        return asking

    async def answers_alone_when_late(self, wait_s: float = 0.0) -> None:
        """Asserts that the first answers in the end, and that the second is not asked meanwhile."""
        self.rank(1).gate.clear()
        asking = asyncio.create_task(self.answered_by(wait_s))
        await self.until(lambda: len(self.rank(1).deadlines) > 0)
        for _ in range(20):
            await asyncio.sleep(0.001)
        self.rank(1).gate.set()

        assert await asking == self.rank(1).answered_by
        assert self.rank(2).deadlines == []

    def counted(self, outcome: str) -> float:
        value = self._metrics.registry.get_sample_value("query_service_hedges_total", {"outcome": outcome})
        return value or 0.0


@pytest.fixture
async def cluster(view: View, metrics: Metrics, clock: ManualClock) -> Cluster:
    return Cluster(view, metrics, clock)


@pytest.fixture
def ticking(cluster: Cluster) -> Iterator[None]:
    """Lets the owner answer other callers all the time: it is slow, not down."""

    async def tick() -> None:
        while True:
            cluster.peer_speaks()
            await asyncio.sleep(0)

    task = asyncio.get_event_loop().create_task(tick())
    yield
    task.cancel()


async def test_a_fast_owner_is_asked_alone(cluster: Cluster) -> None:
    assert await cluster.answered_by() == cluster.rank(1).answered_by
    assert cluster.rank(2).deadlines == []


async def test_the_next_replica_answers_for_a_slow_owner_whose_call_is_cancelled(cluster: Cluster) -> None:
    cluster.rank(1).gate.clear()

    assert await cluster.answered_by() == cluster.rank(2).answered_by
    assert cluster.rank(1).cancelled == 1
    assert cluster.rank(3).deadlines == []
    assert cluster.counted("won") == 1


async def test_the_owner_may_still_answer_first(cluster: Cluster) -> None:
    asking = await cluster.racing()
    cluster.rank(1).gate.set()

    assert await asking == cluster.rank(1).answered_by
    assert cluster.rank(2).cancelled == 1
    assert cluster.counted("lost") == 1


async def test_a_second_replica_that_does_not_serve_leaves_the_owner_its_time(cluster: Cluster) -> None:
    cluster.rank(1).gate.clear()
    cluster.rank(2).failure = NotServedError("still reading")
    asking = asyncio.create_task(cluster.answered_by())
    await cluster.until(lambda: len(cluster.rank(2).deadlines) > 0)
    cluster.rank(1).gate.set()

    assert await asking == cluster.rank(1).answered_by


async def test_when_both_fail_the_next_is_asked(cluster: Cluster) -> None:
    cluster.rank(1).failure = cluster.rank(2).failure = NotServedError("reading")

    assert await cluster.answered_by() == cluster.rank(3).answered_by


@pytest.mark.parametrize(
    "failure",
    [AbsentError("nothing", query_pb2.Absence(), query_pb2.Freshness()), InvalidRequestError("wrong")],
)
async def test_an_absence_or_a_refusal_of_the_second_ends_the_race(cluster: Cluster, failure: AbsentError) -> None:
    cluster.rank(1).gate.clear()
    cluster.rank(2).failure = failure

    with pytest.raises(type(failure)):
        await cluster.answered_by()

    assert cluster.rank(1).cancelled == 1


async def test_a_caller_that_goes_away_cancels_both(cluster: Cluster) -> None:
    asking = await cluster.racing()
    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)

    assert [cluster.rank(rank).cancelled for rank in (1, 2)] == [1, 1]


async def test_a_peer_that_answers_nobody_is_asked_last_after_one_slow_call(cluster: Cluster) -> None:
    cluster.rank(1).gate.clear()
    await cluster.answered_by()
    assert cluster.peers.of(cluster.ranked[0]).unreachable

    for _ in range(20):
        assert await cluster.answered_by() == cluster.rank(2).answered_by

    assert len(cluster.rank(1).deadlines) == 1


async def test_an_instance_that_stood_still_itself_takes_no_peer_for_dead(
    view: View, metrics: Metrics, clock: ManualClock
) -> None:
    cluster = Cluster(view, metrics, clock, after_s=0.3)
    cluster.rank(1).gate.clear()
    asking = asyncio.create_task(cluster.answered_by())
    await cluster.until(lambda: len(cluster.rank(1).deadlines) > 0)
    clock.now += 1

    assert await asking == cluster.rank(2).answered_by
    assert not cluster.peers.of(cluster.ranked[0]).unreachable


async def test_all_calls_that_wait_for_a_dead_peer_go_on(cluster: Cluster) -> None:
    cluster.rank(1).gate.clear()
    answers = await asyncio.gather(*(cluster.answered_by() for _ in range(50)))

    assert set(answers) == {cluster.rank(2).answered_by}


@pytest.mark.usefixtures("ticking")
async def test_a_peer_that_is_merely_slow_is_hedged_for_the_burst_and_then_waited_for(cluster: Cluster) -> None:
    cluster.rank(1).gate.clear()
    for _ in range(10):
        assert await cluster.answered_by() == cluster.rank(2).answered_by
    waiting = asyncio.create_task(cluster.answered_by())
    await cluster.until(lambda: cluster.counted("refused") == 1)
    assert not cluster.peers.of(cluster.ranked[0]).unreachable
    cluster.rank(1).gate.set()

    assert await waiting == cluster.rank(1).answered_by
    assert cluster.counted("won") == 10


async def test_calls_earn_their_share_of_hedges(view: View, metrics: Metrics, clock: ManualClock) -> None:
    cluster = Cluster(view, metrics, clock, share=0.5)
    for _ in range(30):  # far more than the burst
        cluster.rank(1).gate.clear()
        cluster.peer_speaks()
        assert await cluster.answered_by() == cluster.rank(2).answered_by
        cluster.peer_speaks()
        cluster.rank(1).gate.set()
        assert await cluster.answered_by() == cluster.rank(1).answered_by

    assert cluster.counted("refused") == 0


async def test_a_replica_that_failed_lately_is_no_second(cluster: Cluster) -> None:
    cluster.peers.of(cluster.ranked[1]).failed(None)
    await cluster.answers_alone_when_late()


@pytest.mark.parametrize(("wait_s", "after_s"), [(60, 0.001), (0, 0)], ids=["still-patient", "turned-off"])
async def test_a_call_is_not_hedged_while_it_may_wait_and_not_when_that_is_turned_off(
    view: View, metrics: Metrics, clock: ManualClock, wait_s: float, after_s: float
) -> None:
    cluster = Cluster(view, metrics, clock, after_s=after_s)
    await cluster.answers_alone_when_late(wait_s)


async def test_a_query_that_waits_goes_on_when_others_find_the_peer_dead(cluster: Cluster) -> None:
    cluster.rank(1).gate.clear()
    asking = asyncio.create_task(cluster.answered_by(wait_s=60))
    await cluster.until(lambda: len(cluster.rank(1).deadlines) > 0)
    cluster.peers.of(cluster.ranked[0]).failed(None)

    assert await asyncio.wait_for(asking, 30) == cluster.rank(2).answered_by


def test_it_settles_where_one_result_in_twenty_is_slower() -> None:
    times = random.Random(7)
    slow = SlowestResults(0.001, 10)
    for _ in range(5000):
        slow.note(times.random())
    above: list[bool] = []
    for _ in range(5000):
        seconds = times.random()
        above.append(seconds > slow.after_s)
        slow.note(seconds)

    assert sum(above) / len(above) == pytest.approx(0.05, abs=0.02)


def test_it_stays_between_its_bounds() -> None:
    slow = SlowestResults(0.02, 0.5)
    for _ in range(1000):
        slow.note(0.0)
    assert slow.after_s == 0.02

    for _ in range(1000):
        slow.note(60.0)

    assert slow.after_s == 0.5


def test_it_forgets_a_slow_time() -> None:
    slow = SlowestResults(0.001, 10)
    for _ in range(100):
        slow.note(1.0)
    for _ in range(2000):
        slow.note(0.001)

    assert slow.after_s == 0.001


async def test_a_race_that_the_second_ends_leaves_its_caller_able_to_go_on(cluster: Cluster) -> None:
    cluster.rank(1).gate.clear()
    await cluster.answered_by()
    task = asyncio.current_task()
    assert task is not None

    assert task.cancelling() == 0
    await asyncio.sleep(0)


async def test_a_caller_that_is_cancelled_while_the_second_ends_the_race_stays_cancelled(cluster: Cluster) -> None:
    asking = await cluster.racing()
    cluster.rank(2).gate.set()
    while not asking.cancelling():  # noqa: ASYNC110  until the second has ended the race
        await asyncio.sleep(0)
    asking.cancel()

    with pytest.raises(asyncio.CancelledError):
        await asking


async def test_a_time_limit_of_the_caller_ends_both(cluster: Cluster) -> None:
    cluster.rank(1).gate.clear()
    cluster.rank(2).gate.clear()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.2):
            await cluster.answered_by()

    assert cluster.rank(1).cancelled == 1
