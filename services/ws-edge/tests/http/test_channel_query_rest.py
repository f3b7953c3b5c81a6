"""Queries are added to channels, shown and ended by calls, as keys and ranges are."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from httpx import AsyncClient

from statecast.query.v1.query_pb2 import State
from testkit.ws_edge.channels import add, channel_of
from testkit.ws_edge.edge import RunningEdge
from testkit.ws_edge.odds import FIRST, MARKETS, PRICES, board, odds_edge
from ws_edge.http.channel_rest import ChannelDocument

NARROW = MARKETS | {"sort_from": "a", "sort_to": "m", "limit": 5, "reverse": True}
PRICE = {"store": "market-by-key", "key": {"group": "a"}}
ALL = {"range": FIRST}


@pytest.fixture
async def edge() -> AsyncIterator[RunningEdge]:
    """An edge that serves the odds, and keeps channels of at most four subscriptions and three ranges and queries."""
    async with odds_edge(kafka=True, max_channel_subscriptions=4, max_ranges=3) as running:
        yield running


def query(**fields: Any) -> dict[str, Any]:
    """A subscription of a query with other fields."""
    return {"query": board()["query"] | fields}


async def shown(client: AsyncClient, channel: str) -> list[dict[str, Any]]:
    document = (await client.get(channel)).json()
    ChannelDocument.model_validate(document)
    return list(document["subscriptions"])


async def test_a_channel_shows_its_queries_as_they_were_asked_for(alice: AsyncClient) -> None:
    deep = query(name="deep", steps=[NARROW, PRICES])
    channel = await channel_of(alice, board(), deep, ALL, PRICE)

    assert await shown(alice, channel) == [PRICE, ALL, deep, board()]


async def test_a_query_replaces_the_one_of_its_name(alice: AsyncClient) -> None:
    channel = await channel_of(alice, board(), board("other"))
    await add(alice, channel, board(interval_ms=50, limit=5))

    assert await shown(alice, channel) == [board("other"), board(interval_ms=50, limit=5)]


async def test_a_query_is_removed_by_its_name_and_an_unknown_one_is_ignored(alice: AsyncClient) -> None:
    channel = await channel_of(alice, board(), ALL)
    address = f"{channel}/subscriptions/query"
    answers = [await alice.delete(address, params={"name": name}) for name in ("other", "q", "q")]

    assert [answer.status_code for answer in answers] == [200] * 3
    assert [len(answer.json()["subscriptions"]) for answer in answers] == [2, 1, 1]
    assert await shown(alice, channel) == [ALL]


async def test_a_deleted_channel_leaves_no_query_behind(edge: RunningEdge, alice: AsyncClient) -> None:
    channel = await channel_of(alice, board())
    group = channel.rpartition("/")[2]

    def records() -> int:
        return sum(key.group == group and isinstance(held, State) for key, held in edge.query.held.items())

    before = records()
    await alice.delete(channel)

    assert (before, records()) == (3, 0)


@pytest.mark.parametrize(
    ("subscription", "status", "code", "text"),
    [
        (query(name=""), 400, "malformed_frame", "1 to 64 characters"),
        (query(name="q" * 65), 400, "malformed_frame", "1 to 64 characters"),
        (query(steps=[]), 400, "malformed_frame", "the query q has 0 steps: give 1 to 3"),
        (query(steps=[MARKETS] * 4), 400, "malformed_frame", "give 1 to 3"),
        (query(steps=[MARKETS | {"group_field": "match"}]), 400, "malformed_frame", "'match'; did you mean match_id?"),
        (query(steps=[MARKETS, PRICES | {"limit": 3}]), 400, "malformed_frame", "one value per group"),
        (query(first={"store": "market-by-key", "group": "a"}), 400, "malformed_frame", "one value per group"),
        (query(first=FIRST | {"group": ""}), 400, "malformed_frame", "names no group"),
        (query(steps=[MARKETS | {"store": "odds"}]), 404, "unknown_store", "'odds'"),
        (query(steps=[MARKETS | {"store": "staff-odds"}]), 403, "forbidden", "staff only"),
        (query(first={"store": "bets-by-customer", "group": "customer-0002"}), 403, "forbidden", "somebody else"),
        (board(limit=5), 400, "malformed_frame", "two queries have one name"),
        (query(steps=[MARKETS | {"colour": "red"}]), 422, "wrong_parameter", "colour"),
        (query(steps=[{"store": "odds-by-match"}]), 422, "wrong_parameter", "group_field"),
        (query(first=FIRST | {"limit": -1}), 422, "wrong_parameter", "limit"),
        ({"query": "football"}, 422, "wrong_parameter", "query"),
        (board() | {"interval_ms": -1}, 422, "wrong_parameter", "interval_ms"),
    ],
)
async def test_an_impossible_query_is_refused_with_its_whole_request(
    alice: AsyncClient, subscription: Any, status: int, code: str, text: str
) -> None:
    channel = await channel_of(alice)
    answer = await alice.post(f"{channel}/subscriptions", json={"subscriptions": [board(), subscription]})

    assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)
    assert text in answer.json()["error"]["message"]
    assert await shown(alice, channel) == []


async def test_queries_count_as_ranges_and_as_subscriptions(alice: AsyncClient) -> None:
    channel = await channel_of(alice, board("a"), board("b"), ALL)
    again = await alice.post(f"{channel}/subscriptions", json={"subscriptions": [board("a", limit=5), PRICE]})
    more = await alice.post(f"{channel}/subscriptions", json={"subscriptions": [board("c")]})
    key = await alice.post(f"{channel}/subscriptions", json={"subscriptions": [PRICE | {"key": {"group": "b"}}]})

    assert again.status_code == 200
    for refused, text in ((more, "4 subscriptions"), (key, "4 subscriptions")):
        assert (refused.status_code, refused.json()["error"]["code"]) == (429, "too_many_subscriptions")
        assert text in refused.json()["error"]["message"]
    await alice.delete(f"{channel}/subscriptions", params={"store": "market-by-key", "group": "a"})
    fourth = await alice.post(f"{channel}/subscriptions", json={"subscriptions": [board("c")]})
    assert fourth.json()["error"]["message"] == "a channel may have 3 ranges and queries: create another one"
