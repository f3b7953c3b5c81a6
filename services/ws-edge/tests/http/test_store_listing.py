"""Each consumer is told the stores that it may read, of those that the query service has."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from httpx import AsyncClient

from testkit.ws_edge.edge import RunningEdge
from ws_edge.http.store_listing import StoreListDocument

STORES = """
stores:
  - {name: orders-by-key, message: statecast.orders.v1.Order, keeps: one, owner: {field: customer_id},
     description: Each order., interval_ms: 5000}
  - {name: orders-by-customer, message: statecast.orders.v1.Order, keeps: members,
     owner: {field: customer_id, group: true}}
  - {name: orders-by-item, message: statecast.orders.v1.Order, keeps: members, owner: staff}
  - {name: news, message: json, keeps: members, owner: everyone}
  - {name: not-served-yet, message: json, keeps: one, owner: everyone}
"""


@pytest.fixture
async def edge(tmp_path: Path) -> AsyncIterator[RunningEdge]:
    """An edge with five stores, before a query service that has four of them."""
    stores = tmp_path / "stores.yaml"
    stores.write_text(STORES)
    async with RunningEdge(stores=stores, rows={"news": "json"}) as running:
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
    by_key, by_customer, news = await listed(edge, "customer-0001", "customers")

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

    assert list(stores) == ["orders-by-key", "orders-by-customer", "orders-by-item", "news"]
    assert stores["orders-by-item"] == "staff"


async def test_a_caller_without_the_gateways_secret_is_told_nothing(edge: RunningEdge) -> None:
    async with AsyncClient(base_url=f"http://{edge.address}", verify=False) as stranger:
        answer = await stranger.get("/v1/stores")

    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "gateway_required")
