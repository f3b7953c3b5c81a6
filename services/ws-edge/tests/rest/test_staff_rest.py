"""Only staff revoke access and read reports, and a report shows the metrics."""

from urllib.parse import quote

import pytest
from httpx import AsyncClient

from testkit.ws_edge.edge import Clock, RunningEdge
from ws_edge.metrics import Metrics
from ws_edge.rest.staff_rest import EdgeReport


@pytest.fixture
def edge(keeping_edge: RunningEdge) -> RunningEdge:
    """All calls here go to an edge that can write channels and revocations."""
    return keeping_edge


@pytest.mark.parametrize("consumer", ["customer-0001", "acme/eu", "a%2Fb"])
async def test_staff_revoke_and_lift(edge: RunningEdge, operator: AsyncClient, consumer: str) -> None:
    async with edge.client(consumer) as client:
        before = await client.post("/v1/channels")
        revoked = await operator.post("/v1/revocations", json={"consumer": consumer})
        refused = await client.post("/v1/channels")
        lifted = await operator.delete(f"/v1/revocations/{quote(consumer, safe='')}")
        after = await client.post("/v1/channels")

    assert revoked.json()["consumer"] == consumer
    assert revoked.json()["revoked_at"].endswith("Z")
    assert (before.status_code, revoked.status_code, lifted.status_code, after.status_code) == (201, 201, 204, 201)
    assert (refused.status_code, refused.json()["error"]["code"]) == (403, "revoked")


async def test_a_customer_with_the_username_of_staff_as_its_id_is_somebody_else(
    edge: RunningEdge, operator: AsyncClient
) -> None:
    async with edge.client("operator") as customer:
        channel = (await operator.post("/v1/channels")).json()["channel"]
        foreign = await customer.get(f"/v1/channels/{channel}")
        await operator.post("/v1/revocations", json={"consumer": "operator"})
        refused, goes_on = await customer.get("/v1/consumer"), await operator.get("/v1/consumer")
        await operator.delete("/v1/revocations/operator")
        await operator.post("/v1/revocations", json={"consumer": "operator", "username": True})
        let_in, ended = await customer.get("/v1/consumer"), await operator.get("/v1/consumer")

    assert foreign.status_code == 404
    assert [each.status_code for each in (refused, goes_on, let_in, ended)] == [403, 200, 200, 403]


async def test_only_staff_revoke(alice: AsyncClient) -> None:
    answers = [
        await alice.post("/v1/revocations", json={"consumer": "customer-0002"}),
        await alice.delete("/v1/revocations/customer-0002"),
    ]

    assert {(answer.status_code, answer.json()["error"]["code"]) for answer in answers} == {(403, "forbidden")}


def test_the_report_has_the_counts_of_the_metrics() -> None:
    metrics, clock = Metrics(), Clock()
    report = EdgeReport("edge-1", metrics, lambda: "it is being stopped", clock)
    clock.now += 90
    metrics.sockets.set(3)
    metrics.frames.sent = 12
    metrics.polled_keys.inc(7)
    answer = report.read()

    assert (answer.instance, answer.uptime_s, answer.not_ready) == ("edge-1", 90, "it is being stopped")
    assert answer.sockets == 3
    assert (answer.totals.frames_sent, answer.totals.polled_keys) == (12, 7)


async def test_the_shard_map_and_the_report_are_for_staff(alice: AsyncClient, operator: AsyncClient) -> None:
    shards, report = (await operator.get("/v1/shards")).json(), (await operator.get("/v1/edge")).json()
    refused = [await alice.get(path) for path in ("/v1/shards", "/v1/edge")]

    assert {each["store"] for each in shards["stores"]} >= {"orders-by-key", "orders-by-item"}
    assert shards["shards"][0]["replicas"][0]["address"]
    assert (report["sockets"], "not_ready" in report) == (0, False)
    assert [answer.status_code for answer in refused] == [403, 403]


async def test_the_report_counts_what_the_edge_does(edge: RunningEdge, operator: AsyncClient) -> None:
    before = (await operator.get("/v1/edge")).json()
    async with edge.socket("/update/orders/1") as socket:
        await socket.recv()
        during = (await operator.get("/v1/edge")).json()

    assert (before["sockets"], during["sockets"]) == (0, 1)
    assert during["unique_keys"] > before["unique_keys"]
    assert during["totals"]["frames_sent"] > before["totals"]["frames_sent"]
    assert during["instance"] == edge.address


@pytest.mark.parametrize("body", ["", "{", "[]", '{"consumer": ""}', '{"consumer": 5}', '{"customer": "a"}'])
async def test_a_revocation_of_nobody_is_refused(operator: AsyncClient, body: str) -> None:
    answer = await operator.post("/v1/revocations", content=body)

    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "malformed_frame")
