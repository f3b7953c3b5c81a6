"""Calls create and change channels, each channel by its owner only."""

import asyncio
import json
from typing import Any

import grpc
import pytest
from httpx import AsyncClient

from testkit.ws_edge.edge import RunningEdge

ORDER = {"store": "orders-by-key", "group": "12345"}
ORDERS = {"store": "orders-by-customer", "group": "customer-0001"}
STEPS = [{"store": "orders-by-key", "group_field": "order_id"}]


@pytest.fixture
def edge(keeping_edge: RunningEdge) -> RunningEdge:
    """All calls here go to an edge that can write channels and revocations."""
    return keeping_edge


async def created(client: AsyncClient) -> str:
    """Creates a channel; returns its path."""
    answer = await client.post("/v1/channels")

    assert answer.status_code == 201
    assert answer.json()["expires_in_s"] > 0
    return f"/v1/channels/{answer.json()['channel']}"


async def put(client: AsyncClient, path: str, name: str = "a", **watch: Any) -> Any:
    """Puts a watch into a channel, by default one of an order."""
    return await client.put(f"{path}/watches/{name}", json={"watch": watch or ORDER})


def names_in(answer: Any) -> list[str]:
    return [each["name"] for each in answer.json()["watches"]]


async def test_a_channel_holds_the_watches_that_were_put_into_it(alice: AsyncClient) -> None:
    path = await created(alice)
    await put(alice, path, "orders", **ORDERS, limit=5, steps=STEPS, fields=["order_id"])
    await put(alice, path, "one", **ORDER, interval_ms=0)
    [one, orders] = (await alice.get(path)).json()["watches"]

    assert one == {"name": "one", "watch": {**ORDER, "interval_ms": 0}}
    assert (orders["watch"]["limit"], orders["watch"]["fields"]) == (5, ["order_id"])
    assert orders["watch"]["steps"][0]["group_field"] == "order_id"
    assert "interval_ms" not in orders["watch"]


async def test_a_watch_replaces_the_one_of_its_name(alice: AsyncClient) -> None:
    path = await created(alice)
    await put(alice, path)
    answer = await put(alice, path, **ORDERS)

    assert [each["watch"]["store"] for each in answer.json()["watches"]] == ["orders-by-customer"]


async def test_watches_that_two_edges_add_at_the_same_time_are_all_kept(edge: RunningEdge, alice: AsyncClient) -> None:
    path = await created(alice)
    async with (
        RunningEdge(kafka=True, beside=edge) as other,
        other.client() as elsewhere,
    ):
        names = [f"w{number:02}" for number in range(20)]
        await asyncio.gather(*(put((alice, elsewhere)[at % 2], path, name) for at, name in enumerate(names)))
        kept = names_in(await elsewhere.get(path))

    assert kept == names


async def test_a_watch_is_removed_and_an_unknown_one_is_ignored(alice: AsyncClient) -> None:
    path = await created(alice)
    await put(alice, path)
    answers = [await alice.delete(f"{path}/watches/a") for _ in range(2)]

    assert [(each.status_code, names_in(each)) for each in answers] == [(200, []), (200, [])]


async def test_a_deleted_channel_is_unknown_from_then_on(alice: AsyncClient) -> None:
    path = await created(alice)
    await put(alice, path)
    deleted = await alice.delete(path)
    answer = await put(alice, path)

    assert deleted.status_code == 204
    assert (answer.status_code, answer.json()["error"]["code"]) == (404, "unknown_channel")


async def test_another_consumers_channel_is_unknown_even_to_staff(
    edge: RunningEdge, alice: AsyncClient, operator: AsyncClient
) -> None:
    path = await created(alice)
    bob = edge.headers("customer-0002")
    answers = [
        await alice.get(path, headers=bob),
        await alice.delete(path, headers=bob),
        await alice.delete(f"{path}/watches/a", headers=bob),
        await alice.put(f"{path}/watches/a", json={"watch": ORDER}, headers=bob),
        await operator.get(path, headers=edge.headers("operator", "staff")),
    ]

    assert {(answer.status_code, answer.json()["error"]["code"]) for answer in answers} == {(404, "unknown_channel")}


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({"watch": {"store": "no-such-store", "group": "1"}}, 404, "unknown_store"),
        ({"watch": {"store": "push-channels", "group": "1"}}, 404, "unknown_store"),
        ({"watch": {"store": "orders-by-key"}}, 400, "malformed_watch"),
        ({"watch": ORDER | {"sort_from": "a"}}, 400, "malformed_watch"),
        ({"watch": ORDER | {"fields": ["colour"]}}, 400, "malformed_watch"),
        ({"watch": ORDER | {"token": "x"}}, 400, "malformed_frame"),
        ({"watch": ORDER | {"limmit": 3}}, 400, "malformed_frame"),
        ({"watch": ORDER | {"group": "\ud800"}}, 400, "malformed_frame"),
        ({"watch": ORDER, "name": "b"}, 400, "malformed_frame"),
        ([], 400, "malformed_frame"),
        ({"watch": {"store": "orders-by-item", "group": "i"}}, 404, "unknown_store"),
        ({"watch": ORDERS | {"group": "customer-0002"}}, 403, "forbidden"),
        ({"watch": ORDERS | {"steps": [{"store": "orders-by-item", "group_field": "order_id"}]}}, 404, "unknown_store"),
    ],
)
async def test_a_watch_that_no_socket_could_have_is_refused(
    alice: AsyncClient, body: Any, status: int, code: str
) -> None:
    path = await created(alice)
    answer = await alice.put(f"{path}/watches/a", content=json.dumps(body))

    assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)
    assert names_in(await alice.get(path)) == []


async def test_a_channel_has_a_limit_of_watches_and_expires() -> None:
    async with (
        RunningEdge(kafka=True, max_channel_watches=2, channel_lifetime_s=60) as edge,
        edge.client() as client,
    ):
        path = await created(client)
        statuses = [(await put(client, path, name)).status_code for name in "abac"]
        edge.wall_clock.now += 60
        ended = await client.get(path)

    assert (ended.status_code, ended.json()["error"]["code"]) == (404, "unknown_channel")
    assert statuses == [200, 200, 200, 429]


@pytest.mark.parametrize("channel", ["x", "push-channels", "A" * 22, "%C3%A4" * 22])
async def test_a_malformed_identifier_is_unknown(alice: AsyncClient, channel: str) -> None:
    answer = await alice.get(f"/v1/channels/{channel}")

    assert (answer.status_code, answer.json()["error"]["code"]) == (404, "unknown_channel")


async def test_an_outage_answers_unavailable(edge: RunningEdge, alice: AsyncClient) -> None:
    path = await created(alice)
    edge.query.failing = grpc.StatusCode.FAILED_PRECONDITION
    answer = await alice.post("/v1/channels")
    later = await alice.get(path)

    assert {(each.status_code, each.json()["error"]["code"]) for each in (answer, later)} == {(503, "unavailable")}


async def test_a_consumer_has_a_limit_of_channels_per_hour_and_others_have_their_own() -> None:
    async with (
        RunningEdge(kafka=True, consumer_channels_per_hour=1) as edge,
        edge.client(headers={}) as client,
    ):
        own, others = edge.headers(), edge.headers("customer-0002")
        answers = [await client.post("/v1/channels", headers=headers) for headers in (own, own, others)]

    assert [answer.status_code for answer in answers] == [201, 429, 201]
    assert answers[1].json()["error"]["code"] == "too_many_channels"
