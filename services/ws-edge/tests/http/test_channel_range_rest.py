"""Ranges are added to channels, shown and ended by calls, as keys are."""

import json
from typing import Any

import pytest
from httpx import AsyncClient

from statecast.query.v1.query_pb2 import State
from testkit.ws_edge.channels import add, channel_of, order, orders_of
from testkit.ws_edge.edge import RunningEdge
from ws_edge.http.channel_rest import ChannelDocument, subject_of
from ws_edge.model.states import RangeKey

ME, STORE = "customer-0001", "orders-by-customer"
WINDOW: dict[str, Any] = {"sort_from": "2024", "sort_to": "2025", "limit": 5, "reverse": True}
ALL: dict[str, Any] = {"store": STORE, "group": ME}


@pytest.fixture
def edge(keeping_edge: RunningEdge) -> RunningEdge:
    """All calls here go to an edge that can keep things."""
    return keeping_edge


def records(edge: RunningEdge, channel: str) -> int:
    """How many records of the channel the query service has."""
    rows = (held for key, held in edge.query.held.items() if key.group == channel.rpartition("/")[2])
    return sum(isinstance(held, State) for held in rows)


async def shown(client: AsyncClient, channel: str) -> list[dict[str, Any]]:
    document = (await client.get(channel)).json()
    ChannelDocument.model_validate(document)
    return list(document["subscriptions"])


async def test_a_channel_shows_its_ranges_as_they_were_asked_for(alice: AsyncClient) -> None:
    subscriptions = [orders_of(ME), orders_of(ME, **WINDOW), order("12345")]
    channel = await channel_of(alice, *subscriptions)

    assert await shown(alice, channel) == subscriptions


async def test_adding_a_range_again_changes_its_interval(alice: AsyncClient) -> None:
    channel = await channel_of(alice, orders_of(ME))
    await add(alice, channel, orders_of(ME, interval_ms=0, limit=0, sort_from=""))

    assert await shown(alice, channel) == [orders_of(ME, interval_ms=0)]


async def test_a_range_is_removed_by_its_fields_and_an_unknown_one_is_ignored(alice: AsyncClient) -> None:
    channel = await channel_of(alice, orders_of(ME), orders_of(ME, **WINDOW), order("12345"))
    address = f"{channel}/subscriptions/range"
    other = await alice.delete(address, params=ALL | WINDOW | {"limit": 6})
    first = await alice.delete(address, params=ALL | WINDOW)
    again = await alice.delete(address, params=ALL | WINDOW)
    last = await alice.delete(address, params=ALL)

    assert [answer.status_code for answer in (other, first, again, last)] == [200] * 4
    assert [len(answer.json()["subscriptions"]) for answer in (other, first, again, last)] == [3, 2, 2, 1]
    assert await shown(alice, channel) == [order("12345")]


async def test_a_deleted_channel_leaves_no_range_behind(edge: RunningEdge, alice: AsyncClient) -> None:
    channel = await channel_of(alice, orders_of(ME))
    before = records(edge, channel)
    await alice.delete(channel)

    assert (before, records(edge, channel)) == (3, 0)


@pytest.mark.parametrize(
    ("subscription", "status", "code", "text"),
    [
        (orders_of("customer-0002"), 403, "forbidden", "belongs to somebody else"),
        (orders_of(ME, store="orders-by-item"), 403, "forbidden", "for staff only"),
        (orders_of(ME, store="no-such-store"), 404, "unknown_store", "there is no store"),
        (orders_of(ME, store="push-channels"), 404, "unknown_store", "there is no store"),
        (orders_of(ME, store="orders-by-key"), 400, "malformed_frame", "one value per group"),
        (orders_of(""), 400, "malformed_frame", "names no group"),
        (orders_of(ME, sort_from="2", sort_to="1"), 400, "malformed_frame", "swap them"),
        (orders_of(ME, sort_from="a\0b"), 400, "malformed_frame", "NUL"),
        (orders_of(ME, limit=-1), 422, "wrong_parameter", "limit"),
        (orders_of(ME, colour="red"), 422, "wrong_parameter", "colour"),
        (orders_of(ME) | order("12345"), 422, "wrong_parameter", "store"),
        ({"interval_ms": 0}, 422, "wrong_parameter", "store"),
        ("everything", 422, "wrong_parameter", "dictionary"),
        (orders_of("\ud800"), 422, "wrong_parameter", "group: Value error, it has half of a character"),
    ],
)
async def test_an_impossible_range_is_refused_with_its_whole_request(
    alice: AsyncClient, subscription: Any, status: int, code: str, text: str
) -> None:
    channel = await channel_of(alice)
    body = json.dumps({"subscriptions": [order("12345"), orders_of(ME), subscription]})
    headers = {"Content-Type": "application/json"}
    answer = await alice.post(f"{channel}/subscriptions", content=body, headers=headers)

    assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)
    assert text in answer.json()["error"]["message"]
    assert await shown(alice, channel) == []


async def test_ranges_of_another_consumers_channel_cannot_be_removed(edge: RunningEdge, alice: AsyncClient) -> None:
    channel = await channel_of(alice, orders_of(ME))
    bob = edge.headers("customer-0002")
    answer = await alice.delete(f"{channel}/subscriptions/range", params=ALL, headers=bob)

    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "forbidden")


async def test_a_channel_has_as_many_ranges_as_a_socket_and_they_count_as_subscriptions() -> None:
    async with (
        RunningEdge(kafka=True, max_ranges=2, max_channel_subscriptions=3) as edge,
        AsyncClient(base_url=f"http://{edge.address}", headers=edge.headers(), verify=False) as client,
    ):
        channel = await channel_of(client, orders_of(ME), orders_of(ME, limit=1))
        again = await client.post(f"{channel}/subscriptions", json={"subscriptions": [orders_of(ME)]})
        third = await client.post(f"{channel}/subscriptions", json={"subscriptions": [orders_of(ME, limit=2)]})
        keys = await client.post(f"{channel}/subscriptions", json={"subscriptions": [order("1"), order("2")]})

    assert again.status_code == 200
    for refused, text in ((third, "2 ranges"), (keys, "3 subscriptions")):
        assert (refused.status_code, refused.json()["error"]["code"]) == (429, "too_many_subscriptions")
        assert text in refused.json()["error"]["message"]


async def test_staff_may_have_any_group(edge: RunningEdge, operator: AsyncClient) -> None:
    operator.headers.update(edge.headers("operator", "staff"))
    channel = await channel_of(operator, orders_of("customer-0002"), orders_of("item", store="orders-by-item"))
    document = ChannelDocument.model_validate((await operator.get(channel)).json())

    assert [subject_of(each) for each in document.subscriptions] == [
        RangeKey(STORE, "customer-0002", "", "", 0, False),
        RangeKey("orders-by-item", "item", "", "", 0, False),
    ]
