"""Whoever may see every row of a store reads all of it, a page at a time."""

import pytest
from httpx import AsyncClient

from statecast.orders.v1.order_pb2 import Order
from testkit.ws_edge.edge import RunningEdge, until
from ws_edge.http.rest import PageDocument
from ws_edge.model.states import StoreKey

STORE = "/v1/stores/orders-by-customer"


def fill(edge: RunningEdge) -> list[str]:
    """Puts two orders of each of three customers; returns the orders in the order of their keys."""
    for number in (5, 2, 1, 6, 4, 3):
        customer = f"customer-{(number - 1) // 2}"
        key = StoreKey("orders-by-customer", customer, f"2024-08-0{number}T12:00:00.000000Z", f"order-{number}")
        edge.query.put(key, Order(order_id=key.member, customer_id=customer))
    return [f"order-{number}" for number in range(1, 7)]


async def read_all(client: AsyncClient, **params: str | int) -> list[list[str]]:
    """Reads to the end; returns the orders of each page."""
    pages: list[list[str]] = []
    token = ""
    while True:
        answer = await client.get(STORE, params={**params, "page_token": token})
        page = PageDocument.model_validate(answer.json())
        assert page.through is None
        pages.append([str(state.key.member) for state in page.states])
        if not (token := page.next_page_token):
            return pages


async def test_staff_read_all_groups_in_the_order_of_their_keys(edge: RunningEdge, operator: AsyncClient) -> None:
    orders = fill(edge)

    assert await read_all(operator) == [orders]
    assert await read_all(operator, limit=4) == [orders[:4], orders[4:]]
    assert await read_all(operator, limit=4, reverse="true") == [orders[:1:-1], orders[1::-1]]


async def test_a_range_of_groups_is_read_between_two_sort_values(edge: RunningEdge, operator: AsyncClient) -> None:
    orders = fill(edge)
    window = {"from": "2024-08-02", "to": "2024-08-05"}

    assert await read_all(operator, **window) == [orders[1:4]]
    assert await read_all(operator, group_from="customer-1", **window) == [orders[2:4]]
    assert await read_all(operator, group_from="customer-0", group_to="customer-1", limit=1) == [
        ["order-1"],
        ["order-2"],
    ]


async def test_customers_read_only_stores_that_are_for_everyone(edge: RunningEdge, alice: AsyncClient) -> None:
    refused = await alice.get(STORE)
    edge.query.define(
        "stores: [{name: orders-by-customer, message: statecast.orders.v1.Order, keeps: members, readers: everyone}]"
    )
    await until(lambda: edge.parts.live_stores.stores["orders-by-customer"].rule.everyone)
    orders = fill(edge)
    answer = await alice.get(STORE)
    pages = await read_all(alice)

    assert (refused.status_code, refused.json()["error"]["code"]) == (403, "forbidden")
    assert "orders-by-customer" in refused.json()["error"]["message"]
    assert pages == [orders]
    assert answer.headers["Cache-Control"].startswith("public")


async def test_a_page_token_names_no_row(edge: RunningEdge, operator: AsyncClient) -> None:
    fill(edge)
    page = (await operator.get(STORE, params={"limit": 1})).json()

    assert "customer" not in page["next_page_token"]


@pytest.mark.parametrize(
    ("path", "status", "code"),
    [
        ("/v1/stores/orders-by-custmer", 404, "unknown_store"),
        (STORE + "?page_token=forged", 400, "malformed_frame"),
        (STORE + "?group_from=a%00b", 400, "malformed_frame"),
        (STORE + "?to=" + "a" * 1025, 400, "malformed_frame"),
        ("/v1/stores/orders-by-key?from=a", 400, "malformed_frame"),
        (STORE + "?limit=0", 422, "wrong_parameter"),
        (STORE + "?limit=1001", 422, "wrong_parameter"),
    ],
)
async def test_a_call_that_cannot_be_answered_is_refused(
    operator: AsyncClient, path: str, status: int, code: str
) -> None:
    answer = await operator.get(path)

    assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)
