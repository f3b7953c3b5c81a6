"""Every domain, from its source to a socket: the rows equal those of a plain model of the same change log."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial

import pytest
from drivers.gateway_client import client_of, gateway_of
from drivers.pipeline_checks import (
    Expected,
    assert_rows,
    assert_topic_holds,
    expected_of,
    first_of,
    groups_of,
    of_group,
)
from drivers.pipeline_models import MODELS, NUL, Plain
from drivers.query_board import QueryBoard, expected_board
from drivers.store_readers import group_by_rest, store_of_instance, window_by_rest
from drivers.store_watchers import MAX_MEMBERS, Screen, StoreWatchers

from local_stack.domains import DOMAINS
from local_stack.running_stack import RunningStack
from statecast.odds.v1.market_pb2 import Market
from statecast.odds.v1.match_pb2 import Match
from statecast_client.push import Step
from statecast_domains.derivation import derive
from statecast_domains.domain import read_domains
from testkit.topics import count_records
from testkit.waiting import eventually, scaled, wait_until

CHANGES = 300
WATCHED_GROUPS = 3
WATCHED_MATCHES, WATCHED_MARKETS = 100, 10
"""More than there are. All sockets may come to one edge, and each row that may be watched counts there."""
ABOUT_TO_START = "MATCH_STATUS_ABOUT_TO_START"
BOOKINGS = "bookings-by-customer"
READ_GROUPS = 10
PIPELINES = [name for name, model in MODELS.items() if model.domain != "orders"]
"""Of the orders `test_exactness.py` tells the same."""
STORES = [store.name for store in derive(read_domains([DOMAINS])).stores if store.name in PIPELINES]


class Sources:
    """The simulators of a stack, which make changes or rest."""

    def __init__(self, stack: RunningStack) -> None:
        self.names = [f"cdc-simulator-{domain}" for domain in stack.file.domains]
        self._stack = stack
        self._bootstrap = stack.file.kafka.bootstrap
        self._topics: defaultdict[str, set[str]] = defaultdict(set)
        for model in MODELS.values():
            self._topics[model.domain] |= model.sources.keys() - MODELS.keys()

    def make_changes(self) -> None:
        """Returns when every domain has made some changes more."""
        wanted = {domain: self._count(domain) + CHANGES for domain in self._stack.file.domains}
        for domain, count in wanted.items():
            wait_until(partial(self._has, domain, count), f"{domain} makes changes", timeout_s=120)

    def count(self) -> int:
        """Returns how many changes all domains have made."""
        return sum(map(self._count, self._stack.file.domains))

    def rest(self) -> None:
        """Ends the simulators; Kafka has all their changes then."""
        for name in self.names:
            self._stack.stop(name)

    def go_on(self) -> None:
        """Starts the simulators again."""
        for name in self.names:
            self._stack.start(name)
            self._stack.wait_ready(name, scaled(60))

    def _has(self, domain: str, count: int) -> bool:
        return self._count(domain) >= count

    def _count(self, domain: str) -> int:
        return sum(count_records(self._bootstrap, topic) for topic in self._topics[domain])


@dataclass(frozen=True)
class Played:
    """Domains at rest, and the rows expected on each pipeline's topic."""

    stack: RunningStack
    sources: Sources
    expected: Mapping[str, Expected | Plain]


@dataclass(frozen=True)
class Disturbed:
    """The same after kills, with those who watched."""

    played: Played
    watchers: StoreWatchers


def _played(stack: RunningStack, sources: Sources) -> Played:
    sources.rest()
    bootstrap = stack.file.kafka.bootstrap
    return Played(stack, sources, {name: expected_of(bootstrap, name) for name in PIPELINES})


@pytest.fixture(scope="module")
def undisturbed(domains_stack: RunningStack) -> Played:
    """After changes during which nothing has died."""
    sources = Sources(domains_stack)
    sources.go_on()
    sources.make_changes()
    return _played(domains_stack, sources)


PROCESSOR_LIVES = pytest.param((), id="processor-lives")
ALL_DIE = pytest.param(("stream-processor",), id="all-die", marks=pytest.mark.long)
"""It needs minutes to start so many pipelines again."""


@pytest.fixture(scope="module", params=[PROCESSOR_LIVES, ALL_DIE])
def disturbed(undisturbed: Played, request: pytest.FixtureRequest) -> Iterator[Disturbed]:
    """After more changes, during which the services have died while staff watched groups of every store.

    The processor has where the parameter names it.
    """
    stack, sources = undisturbed.stack, undisturbed.sources
    screens = [screen for name, expected in undisturbed.expected.items() for screen in _screens(name, expected)]
    board = _board_of(undisturbed.expected["matches-by-sport-and-status"])
    with StoreWatchers(gateway_of(stack), client_of(stack, "operator"), screens, board) as watchers:
        wait_until(lambda: not watchers.waiting, lambda: f"still waiting: {watchers.waiting}", timeout_s=120)
        sources.go_on()
        for victim in (*sources.names, *request.param, "query-1", "edge-1", "gateway"):
            _kill(stack, victim, sources)
        watchers.check()
        yield Disturbed(_played(stack, sources), watchers)


def _screens(store: str, expected: Expected | Plain) -> list[Screen]:
    if isinstance(expected, Counter):
        return []
    return [Screen(store, group, type(first_of(expected))) for group in groups_of(expected)[:WATCHED_GROUPS]]


def _board_of(matches: Expected | Plain) -> QueryBoard:
    """Returns the markets of all matches of a sport that are about to start, in whichever sport there are most."""
    assert not isinstance(matches, Counter)
    groups = Counter(key.split(NUL)[0] for key in matches if ABOUT_TO_START in key)
    (group, _), *_ = groups.most_common()
    step = Step(store="odds-by-match", group_field="match_id", limit=WATCHED_MARKETS)
    return QueryBoard("matches-by-sport-and-status", group, WATCHED_MATCHES, step, Match, Market)


def _kill(stack: RunningStack, victim: str, sources: Sources) -> None:
    changes = sources.count()
    stack.kill(victim)
    stack.wait_ready(victim, scaled(180))
    wait_until(lambda: sources.count() > changes, f"changes go on while {victim} is down")


@pytest.mark.parametrize("pipeline", PIPELINES)
@pytest.mark.timeout(900)
def test_a_pipeline_leaves_what_its_model_expects(undisturbed: Played, pipeline: str) -> None:
    bootstrap, expected = undisturbed.stack.file.kafka.bootstrap, undisturbed.expected[pipeline]

    eventually(lambda: assert_topic_holds(bootstrap, pipeline, expected), timeout_s=240)


@pytest.mark.parametrize("pipeline", PIPELINES)
@pytest.mark.timeout(1_200)
def test_after_the_death_of_each_service_a_pipeline_leaves_what_its_model_expects(
    disturbed: Disturbed, pipeline: str
) -> None:
    played = disturbed.played
    bootstrap, expected = played.stack.file.kafka.bootstrap, played.expected[pipeline]

    eventually(lambda: assert_topic_holds(bootstrap, pipeline, expected, repeats=True), timeout_s=240)


@pytest.mark.parametrize("store", STORES)
@pytest.mark.timeout(1_200)
def test_every_instance_the_gateway_and_every_socket_show_what_the_model_expects(
    disturbed: Disturbed, store: str
) -> None:
    stack, expected = disturbed.played.stack, disturbed.played.expected[store]
    assert not isinstance(expected, Counter), "a store has rows"
    for query in stack.file.queries:
        _wait_until_it_holds(query.shard_address, store, expected)
    client = client_of(stack, "operator")
    for group in groups_of(expected)[:READ_GROUPS]:
        of_model = of_group(expected, group)
        assert_rows(f"{store} {group} by REST", group_by_rest(client, store, group, of_model), of_model)
    for screen in disturbed.watchers.screens:
        if screen.store == store:
            _wait_until_it_shows(screen, of_group(expected, screen.group))


def _wait_until_it_holds(shard_address: str, store: str, expected: Expected) -> None:
    where = f"{store} at {shard_address}"
    eventually(lambda: assert_rows(where, store_of_instance(shard_address, store), expected), timeout_s=120)


def _wait_until_it_shows(screen: Screen, expected: Expected) -> None:
    where = f"{screen.store} {screen.group} by socket"
    # Invoices only grow: on a slow machine a store has more of them than a socket may watch.
    first = dict(sorted(expected.items())[:MAX_MEMBERS])
    eventually(lambda: assert_rows(where, screen.shown, first), timeout_s=60)


@pytest.mark.timeout(1_200)
def test_a_query_in_two_steps_shows_what_the_models_expect(disturbed: Disturbed) -> None:
    board, expected = disturbed.watchers.board, disturbed.played.expected
    matches, markets = expected["matches-by-sport-and-status"], expected["odds-by-match"]
    assert not isinstance(matches, Counter)
    assert not isinstance(markets, Counter)
    wanted = expected_board(of_group(matches, board.group), markets)

    eventually(lambda: assert_rows(f"board of {board.group}", board.shown, wanted), timeout_s=60)
    assert any(NUL in row for row in wanted), "no match is about to start, or none has a market"


@pytest.mark.timeout(1_200)
def test_a_window_of_many_groups_has_the_rows_of_the_model(disturbed: Disturbed) -> None:
    expected = disturbed.played.expected[BOOKINGS]
    assert not isinstance(expected, Counter)
    client = client_of(disturbed.played.stack, "operator")
    groups, sorts = (sorted({key.split(NUL)[part] for key in expected}) for part in (0, 1))
    first, last = (groups[len(groups) * quarter // 4] for quarter in (1, 3))
    earliest, latest = (sorts[len(sorts) * quarter // 4] for quarter in (1, 3))
    window = {"group_from": first, "group_to": last, "sort_from": earliest, "sort_to": latest}
    wanted = {
        key: row
        for key, row in expected.items()
        if first <= key.split(NUL)[0] < last and earliest <= key.split(NUL)[1] < latest
    }

    read = window_by_rest(client, BOOKINGS, first_of(expected), len(wanted) // 3 + 1, **window)
    assert 0 < len(wanted) < len(expected) / 2
    assert_rows("the window", read, wanted)


def test_no_socket_shows_state_that_goes_backwards(disturbed: Disturbed) -> None:
    watchers = disturbed.watchers
    watchers.check()
    sockets = len({screen.store for screen in watchers.screens}) + 1

    assert watchers.connects > sockets, "no socket broke, so the kill of an edge proved nothing"
    assert [problem for screen in watchers.screens for problem in screen.backwards] == []
    assert all(screen.updates for screen in watchers.screens)
