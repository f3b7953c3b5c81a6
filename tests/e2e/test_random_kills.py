"""Every process but the simulator dies at random; watchers continue without missing or repeating a change.

A seed decides the changes and the kills. The test's name has it; RANDOM_KILLS_SEEDS="1 7" sets others.
"""

import os
import time
from collections.abc import Iterable

import pytest
from drivers.edge_metrics import SOCKETS, edges_of
from drivers.gateway_client import Gateway, client_of
from drivers.order_source import OrderChanges, OrderSource
from drivers.push_watchers import PushWatcher, PushWatchers
from drivers.random_kills import RandomKills, plan_kills
from drivers.topic_readers import read_history
from drivers.update_assertions import assert_all_told, assert_range_told_once, assert_told_once

from local_stack.running_stack import RunningStack
from testkit.waiting import eventually

SEEDS = [int(seed) for seed in os.environ.get("RANDOM_KILLS_SEEDS", "1").split()]

CHANGES = 10_000
CHANGES_PER_S = 200
EDGE_KILLS, QUERY_KILLS, SINGLE_KILLS = 6, 5, 4
SINGLES = ("stream-processor", "gateway", "broker")
"""The parts with one instance. Nothing is lost while such a part is down, and it is started again."""
WATCHERS = 8
WATCHED_ONCE = 400  # with these all watches fit the quota of one consumer at the edge that is left
INTERVALS_MS = (0, 200)


def watchers_for(changes: OrderChanges) -> list[PushWatcher]:
    """Clients that together watch each busy order once, some that are yet to be placed, and each customer twice."""
    order_ids = changes.busy + changes.placed_once[:: len(changes.placed_once) // WATCHED_ONCE]
    return [
        PushWatcher(
            order_ids[number::WATCHERS],
            changes.customers[number // len(INTERVALS_MS) :: WATCHERS // len(INTERVALS_MS)],
            INTERVALS_MS[number % len(INTERVALS_MS)],
        )
        for number in range(WATCHERS)
    ]


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", SEEDS)
def test_watchers_go_on_without_gap_or_repeat(
    stack: RunningStack, gateway: Gateway, source: OrderSource, seed: int
) -> None:
    changes = OrderChanges(source, seed, CHANGES)

    def changes_made() -> int:
        return changes.made_count

    first = len(changes.busy)
    edges = plan_kills(seed, [edge.name for edge in stack.file.edges], EDGE_KILLS, first, CHANGES)
    queries = plan_kills(seed, [query.name for query in stack.file.queries], QUERY_KILLS, first, CHANGES)
    singles = plan_kills(seed, SINGLES, SINGLE_KILLS, first, CHANGES)
    with PushWatchers(gateway, client_of(stack, "operator"), watchers_for(changes)) as watchers:
        eventually(watchers.assert_begun)
        with (
            RandomKills(stack, edges, changes_made, lambda edge: _assert_resumed(stack, watchers, edge)) as edge_kills,
            RandomKills(stack, queries, changes_made, lambda _: watchers.check()) as query_kills,
            RandomKills(stack, singles, changes_made, lambda _: watchers.check()) as single_kills,
        ):
            for number in range(CHANGES):
                if number == first:
                    eventually(lambda: _assert_placed(watchers, changes.busy))
                edge_kills.before(number)
                query_kills.before(number)
                single_kills.before(number)
                changes.make_next()
                time.sleep(1 / CHANGES_PER_S)
        history = read_history(stack.file.kafka.bootstrap, changes.prefix)
        eventually(lambda: assert_all_told(watchers, history), timeout_s=60)

    assert sum(map(len, history.changes.values())) == CHANGES
    assert sum(watcher.attempts for watcher in watchers.all) > WATCHERS, "no socket broke, so the kills proved nothing"
    _assert_recovered(watchers.all)
    for watcher in watchers.all:
        for order_id, updates in watcher.updates.items():
            assert_told_once(order_id, updates, history)
        for customer, range_updates in watcher.ranges.items():
            assert_range_told_once(customer, range_updates, history)


def _assert_placed(watchers: PushWatchers, order_ids: Iterable[str]) -> None:
    """Before that a replica may hold nothing; killed, it comes back empty and cannot say that a key is unchanged."""
    placed = {order_id for watcher in watchers.all for order_id in watcher.order_ids if watcher.watches[order_id].rows}
    assert placed >= set(order_ids)


def _assert_resumed(stack: RunningStack, watchers: PushWatchers, victim: str) -> None:
    watchers.check()
    elsewhere = sum(edge.metric(SOCKETS) for edge in edges_of(stack) if edge.name != victim)
    assert elsewhere >= WATCHERS, f"{elsewhere:g} sockets are open while {victim} is down"
    _assert_recovered(watchers.all)


def _assert_recovered(watchers: Iterable[PushWatcher]) -> None:
    for watcher in watchers:
        started_anew = watcher.started_anew
        assert watcher.attempts == 1 or not started_anew, f"resumed with a snapshot: {started_anew}"
