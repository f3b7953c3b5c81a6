"""Each consumer is told the stores that it may read, of those that the query service has."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from httpx import AsyncClient

from testkit.ws_edge.edge import RunningEdge
from ws_edge.http.store_listing import StoreListDocument

STORES = """
stores:
  - {name: orders-by-key, message: statecast.orders.v1.Order, keeps: one, readers: {field: customer_id},
     description: Each order., interval: 5s}
  - {name: orders-by-customer, message: statecast.orders.v1.Order, keeps: members,
     readers: {field: customer_id, group: true}}
  - {name: orders-by-item, message: statecast.orders.v1.Order, keeps: members, readers: staff}
  - {name: news, message: json, keeps: members, readers: everyone}
  - {name: raw, message: bytes}
"""


@pytest.fixture
async def edge() -> AsyncIterator[RunningEdge]:
    """An edge before a query service with five stores, of which it shows four."""
    async with RunningEdge(stores=STORES) as running:
        yield running


async def listed(edge: RunningEdge, consumer: str, groups: str) -> list[dict[str, Any]]:
    """The stores that a consumer is told."""
    headers = edge.headers(consumer, groups)
    async with AsyncClient(base_url=f"http://{edge.address}", headers=headers, verify=False) as client:
        answer = await client.get("/v1/stores")
    assert answer.headers["Cache-Control"] == "private, no-store"
    StoreListDocument.model_validate(answer.json())
    stores: list[dict[str, Any]] = answer.json()["stores"]
    return stores


async def test_a_customer_is_told_what_can_have_rows_for_them(edge: RunningEdge) -> None:
    news, by_customer, by_key = await listed(edge, "customer-0001", "customers")

    assert by_key == {
        "store": "orders-by-key",
        "message": "statecast.orders.v1.Order",
        "description": "Each order.",
        "keeps": "one",
        "ranges": False,
        "readers": {"field": "customer_id", "group": False},
    }
    assert (by_customer["ranges"], by_customer["readers"]) == (True, {"field": "customer_id", "group": True})
    assert by_customer["description"] is None
    assert (news["store"], news["message"], news["readers"]) == ("news", "json", "everyone")


async def test_staff_are_told_every_store_that_is_served(edge: RunningEdge) -> None:
    stores = {each["store"]: each["readers"] for each in await listed(edge, "", "staff")}

    assert list(stores) == ["news", "orders-by-customer", "orders-by-item", "orders-by-key"]
    assert stores["orders-by-item"] == "staff"


async def test_a_caller_without_the_gateways_secret_is_told_nothing(edge: RunningEdge) -> None:
    async with AsyncClient(base_url=f"http://{edge.address}", verify=False) as stranger:
        answer = await stranger.get("/v1/stores")

    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "gateway_required")
