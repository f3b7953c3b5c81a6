"""The decisions between matches and markets."""

from collections import Counter

from cdc_simulator.basis import Basis
from cdc_simulator.domains.odds.domain import DOMAIN
from cdc_simulator.domains.odds.match_life import is_finished
from cdc_simulator.mutation import Delete, Insert
from cdc_simulator.testing import memory_tables
from cdc_simulator.workload import next_mutation

NOW_US = 1_724_848_496_123_456


def test_it_begins_with_markets_of_the_matches_that_are_not_finished(basis: Basis) -> None:
    tables = memory_tables(DOMAIN, basis, NOW_US)
    matches = tables["matches"].rows
    counts = Counter(market.match_number for market in tables["markets"].rows.values())

    assert counts == {number: 4 for number, match in matches.items() if not is_finished(match)}


def test_markets_are_offered_on_matches_that_last_and_outlive_none_for_long(basis: Basis) -> None:
    tables = memory_tables(DOMAIN, basis, NOW_US)
    deleted: Counter[bool] = Counter()
    offered: Counter[int] = Counter()
    for lsn in range(1, 4001):
        mutation = next_mutation(DOMAIN, tables, basis, lsn, NOW_US)
        if mutation.table == "markets" and isinstance(mutation, Insert):
            assert not is_finished(tables["matches"].rows[mutation.after.match_number])
            offered[mutation.after.number] += 1
        if mutation.table == "markets" and isinstance(mutation, Delete):
            deleted[mutation.before.match_number in tables["matches"].rows] += 1
        tables[mutation.table].apply(mutation)

    assert deleted[True] > 20
    assert deleted[False] > 20
    assert max(offered.values()) > 1, "a market that was withdrawn is offered again"


def test_the_last_market_gone_the_matches_go_on(basis: Basis) -> None:
    tables = memory_tables(DOMAIN, basis, NOW_US)
    tables["markets"] = type(tables["markets"])()
    mutations = [next_mutation(DOMAIN, tables, basis, lsn, NOW_US) for lsn in range(1, 50)]

    assert {mutation.table for mutation in mutations} == {"matches", "markets"}
