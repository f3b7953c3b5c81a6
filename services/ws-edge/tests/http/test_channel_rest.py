"""Channels are made and changed by calls, each by its owner alone."""

import asyncio
from collections import Counter
from collections.abc import Coroutine
from typing import Any

import grpc
import pytest
from httpx import AsyncClient, Response

from testkit.waiting import scaled
from testkit.ws_edge.edge import RunningEdge
from ws_edge.http.channel_rest import ChannelDocument, subject_of
from ws_edge.model.states import StoreKey

KEY = {"store": "orders-by-key", "group": "12345"}
MEMBER = {"store": "orders-by-customer", "group": "customer-0001", "sort": "2024-08-28", "member": "order-1"}


@pytest.fixture
def edge(keeping_edge: RunningEdge) -> RunningEdge:
    """All calls here go to an edge that can keep things."""
    return keeping_edge


async def created(client: AsyncClient) -> str:
    answer = await client.post("/v1/channels")

    assert answer.status_code == 201
    return ChannelDocument.model_validate(answer.json()).channel


async def add(client: AsyncClient, channel: str, *keys: dict[str, str], **more: Any) -> Any:
    subscriptions = [
        {"store": key["store"], "key": {name: part for name, part in key.items() if name != "store"}, **more}
        for key in keys
    ]
    return await client.post(f"/v1/channels/{channel}/subscriptions", json={"subscriptions": subscriptions})


async def test_a_channel_holds_what_was_added_to_it(alice: AsyncClient) -> None:
    channel = await created(alice)
    await add(alice, channel, KEY, interval_ms=250)
    await add(alice, channel, MEMBER)
    answer = await alice.get(f"/v1/channels/{channel}")

    document = ChannelDocument.model_validate(answer.json())
    assert [(subject_of(each), each.interval_ms) for each in document.subscriptions] == [
        (StoreKey(**MEMBER), None),
        (StoreKey(**KEY), 250),
    ]


async def test_adding_a_key_again_changes_its_interval(alice: AsyncClient) -> None:
    channel = await created(alice)
    await add(alice, channel, KEY)
    answer = await add(alice, channel, KEY, interval_ms=100)

    assert [each["interval_ms"] for each in answer.json()["subscriptions"]] == [100]


async def test_additions_at_two_edges_at_the_same_time_are_all_kept(edge: RunningEdge, alice: AsyncClient) -> None:
    channel = await created(alice)
    async with (
        RunningEdge(kafka=True, beside=edge) as other,
        AsyncClient(
            base_url=f"http://{other.address}", headers=other.headers(), verify=False, timeout=scaled(5.0)
        ) as elsewhere,
    ):
        keys = [KEY | {"group": str(number)} for number in range(20)]
        await asyncio.gather(*(add((alice, elsewhere)[at % 2], channel, key) for at, key in enumerate(keys)))
        subscriptions = (await elsewhere.get(f"/v1/channels/{channel}")).json()["subscriptions"]

    assert {each["key"]["group"] for each in subscriptions} == {key["group"] for key in keys}


async def test_a_subscription_is_removed_and_an_unknown_one_is_ignored(alice: AsyncClient) -> None:
    channel = await created(alice)
    await add(alice, channel, KEY)
    first = await alice.delete(f"/v1/channels/{channel}/subscriptions", params=KEY)
    second = await alice.delete(f"/v1/channels/{channel}/subscriptions", params=KEY)

    assert (first.status_code, first.json()["subscriptions"]) == (200, [])
    assert (second.status_code, second.json()["subscriptions"]) == (200, [])


async def test_a_deleted_channel_is_unknown_from_then_on(alice: AsyncClient) -> None:
    channel = await created(alice)
    await add(alice, channel, KEY)
    deleted = await alice.delete(f"/v1/channels/{channel}")
    answer = await add(alice, channel, KEY)

    assert deleted.status_code == 204
    assert (answer.status_code, answer.json()["error"]["code"]) == (404, "unknown_channel")


async def test_another_consumers_channel_is_refused_even_to_staff(
    edge: RunningEdge, alice: AsyncClient, operator: AsyncClient
) -> None:
    channel = await created(alice)
    bob = edge.headers("customer-0002")
    answers = [
        await alice.get(f"/v1/channels/{channel}", headers=bob),
        await alice.delete(f"/v1/channels/{channel}", headers=bob),
        await alice.delete(f"/v1/channels/{channel}/subscriptions", params=KEY, headers=bob),
        await alice.post(
            f"/v1/channels/{channel}/subscriptions",
            json={"subscriptions": [{"store": "orders-by-key", "key": {"group": "1"}}]},
            headers=bob,
        ),
        await operator.get(f"/v1/channels/{channel}", headers=edge.headers("operator", "staff")),
    ]

    assert {(answer.status_code, answer.json()["error"]["code"]) for answer in answers} == {(403, "forbidden")}


@pytest.mark.parametrize(
    ("key", "status", "code"),
    [
        ({"store": "no-such-store", "group": "1"}, 404, "unknown_store"),
        ({"store": "push-channels", "group": "1"}, 404, "unknown_store"),
        ({"store": "orders-by-key", "group": ""}, 400, "malformed_frame"),
        ({"store": "orders-by-item", "group": "i", "sort": "s", "member": "m"}, 403, "forbidden"),
        (MEMBER | {"group": "customer-0002"}, 403, "forbidden"),
    ],
)
async def test_an_impossible_subscription_is_refused(
    alice: AsyncClient, key: dict[str, str], status: int, code: str
) -> None:
    channel = await created(alice)
    answer = await add(alice, channel, KEY, key)
    left = await alice.get(f"/v1/channels/{channel}")

    assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)
    assert left.json()["subscriptions"] == []


async def test_a_channel_has_a_limit_of_subscriptions_and_expires() -> None:
    async with (
        RunningEdge(kafka=True, max_channel_subscriptions=2, channel_lifetime_s=60) as edge,
        AsyncClient(base_url=f"http://{edge.address}", headers=edge.headers(), verify=False) as client,
    ):
        channel = await created(client)
        await add(client, channel, KEY, KEY | {"group": "2"})
        again = await add(client, channel, KEY)
        third = await add(client, channel, KEY | {"group": "3"})
        edge.wall_clock.now += 60
        ended = await client.get(f"/v1/channels/{channel}")

    assert (ended.status_code, ended.json()["error"]["code"]) == (404, "unknown_channel")
    assert again.status_code == 200
    assert (third.status_code, third.json()["error"]["code"]) == (429, "too_many_subscriptions")


@pytest.mark.parametrize("channel", ["x", "push-channels", "A" * 22, "%C3%A4" * 22])
async def test_a_malformed_identifier_is_unknown(alice: AsyncClient, channel: str) -> None:
    answer = await alice.get(f"/v1/channels/{channel}")

    assert (answer.status_code, answer.json()["error"]["code"]) == (404, "unknown_channel")


async def test_an_outage_answers_unavailable(edge: RunningEdge, alice: AsyncClient) -> None:
    channel = await created(alice)
    edge.query.failing = grpc.StatusCode.FAILED_PRECONDITION
    answer = await alice.post("/v1/channels")
    later = await alice.get(f"/v1/channels/{channel}")

    assert {(each.status_code, each.json()["error"]["code"]) for each in (answer, later)} == {(503, "unavailable")}


async def test_an_edge_without_kafka_names_the_setting() -> None:
    async with (
        RunningEdge() as edge,
        AsyncClient(base_url=f"http://{edge.address}", headers=edge.headers(), verify=False) as client,
    ):
        answers = [
            await client.post("/v1/channels"),
            await client.get("/v1/channels/AAAAAAAAAAAAAAAAAAAAAA"),
        ]

    for answer in answers:
        assert (answer.status_code, answer.json()["error"]["code"]) == (501, "not_configured")
        assert "WS_EDGE_KAFKA_BOOTSTRAP" in answer.json()["error"]["message"]


async def test_a_consumer_has_a_limit_of_channels_per_hour_and_others_have_their_own() -> None:
    async with (
        RunningEdge(kafka=True, consumer_channels_per_hour=1) as edge,
        AsyncClient(base_url=f"http://{edge.address}", verify=False) as client,
    ):
        own, others = edge.headers(), edge.headers("customer-0002")
        answers = [await client.post("/v1/channels", headers=headers) for headers in (own, own, others)]

    assert [answer.status_code for answer in answers] == [201, 429, 201]
    assert answers[1].json()["error"]["code"] == "too_many_channels"


@pytest.mark.parametrize("edges", [1, 2])
async def test_calls_at_the_same_time_do_not_add_more_than_a_channel_may_have(edges: int) -> None:
    limits: dict[str, Any] = {"max_channel_subscriptions": 10, "kafka": True}
    async with RunningEdge(**limits) as one, RunningEdge(beside=one, **limits) as other:
        clients = [
            AsyncClient(base_url=f"http://{edge.address}", headers=edge.headers(), timeout=60) for edge in (one, other)
        ]
        channel = (await clients[0].post("/v1/channels")).json()["channel"]
        path = f"/v1/channels/{channel}"

        def add(number: int) -> Coroutine[Any, Any, Response]:
            subscription = {"store": "orders-by-key", "key": {"group": f"order-{number}"}}
            return clients[number % edges].post(f"{path}/subscriptions", json={"subscriptions": [subscription]})

        answers = await asyncio.gather(*(add(number) for number in range(40)))
        left = (await clients[0].get(path)).json().get("subscriptions", [])
        for client in clients:
            await client.aclose()

    statuses = Counter(answer.status_code for answer in answers)
    assert set(statuses) <= {200, 429}
    assert len(left) == statuses[200] <= 10
    assert edges == 2 or len(left) == 10
