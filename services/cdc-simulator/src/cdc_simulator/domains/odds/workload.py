"""Decides between matches and markets; pure."""

from collections.abc import Iterator, Mapping
from random import Random

from cdc_simulator.basis import Basis, Moment
from cdc_simulator.domain import Rows
from cdc_simulator.domains.odds import market_life
from cdc_simulator.domains.odds.match_life import MATCH_LIFE, is_finished
from cdc_simulator.domains.odds.rows import MOST_MARKETS
from cdc_simulator.life import grown_rows, next_of_life
from cdc_simulator.mutation import Delete, Insert, Mutation, Update

MATCHES, MARKETS = "matches", "markets"
MATCH_SHARE = 0.15
OFFER_CHANCE = 0.15


def initial_rows(basis: Basis, now_us: int) -> Iterator[Insert]:
    """Yields the matches, and half of the markets of those that are not finished."""
    matches = list(grown_rows(MATCH_LIFE, basis.rows, basis, now_us))
    yield from matches
    for _, match in matches:
        moment = Moment(Random(f"{basis.seed}:markets:{match.number}"), basis, now_us)  # noqa: S311  a game, no secret
        places = [] if is_finished(match) else moment.random.sample(range(MOST_MARKETS), MOST_MARKETS // 2)
        for place in sorted(places):
            yield Insert(MARKETS, market_life.offer(match.number, place, moment))


def next_mutation(tables: Mapping[str, Rows], moment: Moment) -> Mutation:
    """Returns what happens to a match, or to a market, or a new market of a match that is not finished."""
    share = moment.random.random()
    if share < MATCH_SHARE:
        return _of_a_match(tables, moment)
    offered = _offered(tables, moment) if share < MATCH_SHARE + OFFER_CHANCE else None
    return offered or _of_a_market(tables, moment) or _of_a_match(tables, moment)


def _of_a_match(tables: Mapping[str, Rows], moment: Moment) -> Mutation:
    return next_of_life(tables[MATCHES], MATCH_LIFE, moment.basis.rows, moment)


def _offered(tables: Mapping[str, Rows], moment: Moment) -> Mutation | None:
    """A market that the match does not have now, under the id that it had if it was withdrawn before."""
    matches = tables[MATCHES]
    if len(matches) == 0:
        return None
    match = matches.nth(moment.random.randrange(len(matches)))
    place = moment.random.randrange(MOST_MARKETS)
    if is_finished(match) or tables[MARKETS].find(match.number * MOST_MARKETS + place):
        return None
    return Insert(MARKETS, market_life.offer(match.number, place, moment))


def _of_a_market(tables: Mapping[str, Rows], moment: Moment) -> Mutation | None:
    markets = tables[MARKETS]
    if len(markets) == 0:
        return None
    row = markets.nth(moment.random.randrange(len(markets)))
    after = market_life.go_on(row, tables[MATCHES].find(row.match_number), moment)
    return Delete(MARKETS, row) if after is None else Update(MARKETS, row, after)
