"""The edge reports its health, and its OpenAPI document is valid and describes its calls."""

import grpc
from httpx import AsyncClient
from openapi_spec_validator import validate

from testkit.ws_edge.edge import RunningEdge, until


async def test_the_openapi_document_is_valid_and_lists_every_call(edge: RunningEdge, alice: AsyncClient) -> None:
    document = (await alice.get("/openapi.json")).json()
    validate(document)

    assert set(document["paths"]) == {
        "/update/orders/{order_id}",
        "/v1/consumer",
        "/v1/edge",
        "/v1/channels",
        "/v1/channels/{channel}",
        "/v1/channels/{channel}/watches/{name}",
        "/v1/revocations",
        "/v1/revocations/{consumer}",
        "/v1/shards",
        "/v1/stores",
        "/v1/stores/{store}/rows",
        "/v1/tickets",
        "/healthz",
        "/readyz",
    }
    answers = document["paths"]["/update/orders/{order_id}"]["get"]["responses"]
    assert set(answers) == {"200", "304", "403", "404", "422", "503"}
    assert answers["200"]["content"]["application/json"]["schema"]["$ref"].endswith(".OrderUpdatesReply")
    assert all(call["description"] for path in document["paths"].values() for call in path.values())


async def test_the_edge_is_live_always_and_ready_only_while_the_query_service_answers(
    edge: RunningEdge, alice: AsyncClient
) -> None:
    ready = await alice.get("/readyz")
    edge.query.failing = grpc.StatusCode.UNAVAILABLE
    await alice.get("/update/orders/1")
    await until(lambda: edge.parts.shard_watch.reason is not None)
    lost = await alice.get("/readyz")
    alive = await alice.get("/healthz")
    edge.query.failing = None
    await until(lambda: edge.parts.shard_watch.reason is None)

    assert (ready.status_code, ready.text) == (200, "ok\n")
    assert lost.status_code == 503
    assert "scripted to fail" in lost.text
    assert alive.status_code == 200
    assert (await alice.get("/readyz")).status_code == 200


async def test_an_edge_that_drains_is_not_ready(edge: RunningEdge, alice: AsyncClient) -> None:
    await edge.parts.sockets.drain(0.0, 0.0)
    answer = await alice.get("/readyz")

    assert (answer.status_code, answer.text) == (503, "this edge is stopping\n")


async def test_an_unknown_path_and_a_wrong_method_answer_with_the_error_body(
    edge: RunningEdge, alice: AsyncClient
) -> None:
    lost = await alice.get("/update")
    wrong = await alice.post("/update/orders/1")

    assert (lost.status_code, lost.json()["error"]["code"]) == (404, "not_found")
    assert (wrong.status_code, wrong.json()["error"]["code"]) == (405, "refused")
    assert wrong.headers["Allow"] == "GET"


async def test_an_edge_without_kafka_names_the_setting(edge: RunningEdge, operator: AsyncClient) -> None:
    answers = [
        await operator.post("/v1/channels"),
        await operator.get("/v1/channels/AAAAAAAAAAAAAAAAAAAAAA"),
        await operator.post("/v1/revocations", json={"consumer": "customer-0001"}),
    ]

    for answer in answers:
        assert (answer.status_code, answer.json()["error"]["code"]) == (501, "not_configured")
        assert "WS_EDGE_KAFKA_BOOTSTRAP" in answer.json()["error"]["message"]
