"""Access is revoked, and given back, by calls of staff alone."""

import pytest
from httpx import AsyncClient

from ws_edge.testing.edge import RunningEdge
from ws_edge.web.documents import RevocationDocument


@pytest.fixture
def edge(keeping_edge: RunningEdge) -> RunningEdge:
    """All calls here go to an edge that can keep things."""
    return keeping_edge


async def test_staff_revoke_and_lift(alice: AsyncClient, operator: AsyncClient) -> None:
    before = await alice.post("/v1/channels")
    revoked = await operator.post("/v1/revocations", json={"consumer": "customer-0001"})
    refused = await alice.post("/v1/channels")
    lifted = await operator.delete("/v1/revocations/customer-0001")
    after = await alice.post("/v1/channels")

    assert RevocationDocument.model_validate(revoked.json()).consumer == "customer-0001"
    assert (before.status_code, revoked.status_code, lifted.status_code, after.status_code) == (201, 201, 204, 201)
    assert (refused.status_code, refused.json()["error"]["code"]) == (403, "revoked")


async def test_nobody_else_revokes(alice: AsyncClient) -> None:
    answers = [
        await alice.post("/v1/revocations", json={"consumer": "customer-0002"}),
        await alice.delete("/v1/revocations/customer-0002"),
    ]

    assert {(answer.status_code, answer.json()["error"]["code"]) for answer in answers} == {(403, "forbidden")}


async def test_an_edge_without_kafka_says_what_to_set() -> None:
    async with (
        RunningEdge() as edge,
        AsyncClient(base_url=f"http://{edge.address}", headers=edge.headers("", "staff"), verify=False) as client,
    ):
        answer = await client.post("/v1/revocations", json={"consumer": "customer-0001"})

    assert (answer.status_code, answer.json()["error"]["code"]) == (501, "not_configured")
    assert "WS_EDGE_KAFKA_BOOTSTRAP" in answer.json()["error"]["message"]
