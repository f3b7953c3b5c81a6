"""A page that a call has answered is where a socket begins: it is told only what is newer."""

import json
from typing import Any

import pytest
from httpx import AsyncClient
from websockets.asyncio.client import ClientConnection

from statecast.orders.v1.order_pb2 import Order
from testkit.ws_edge.edge import RunningEdge
from ws_edge.http.rest import PageDocument
from ws_edge.model.states import StoreKey

RANGE = {"store": "orders-by-customer", "group": "customer-0001"}
GROUP = "/v1/stores/orders-by-customer/groups/customer-0001"


def put(edge: RunningEdge, name: str) -> None:
    key = StoreKey("orders-by-customer", "customer-0001", f"2024-08-28T12:00:0{name}.000000Z", name)
    edge.query.put(key, Order(order_id=name, customer_id="customer-0001"))


async def watch(socket: ClientConnection, after: Any) -> dict[str, Any]:
    """Watches the range after what a call has answered; returns how it began."""
    await socket.send(json.dumps({"id": "1", "watch_range": {"range": RANGE, "after": after}}))
    began: dict[str, Any] = json.loads(await socket.recv())["range_watched"]
    return began


async def test_a_range_begins_after_the_page_that_a_call_has_answered(edge: RunningEdge, alice: AsyncClient) -> None:
    put(edge, "1")
    page = (await alice.get(GROUP)).json()
    put(edge, "2")
    async with edge.socket("/v1/stream") as socket:
        began = await watch(socket, page["through"])
        changed = json.loads(await socket.recv())["range_changed"]

    assert PageDocument.model_validate(page).through is not None
    assert [state["key"]["member"] for state in page["states"]] == ["1"]
    assert (began["start"], began["members"]) == ("START_RECOVERED", 1)
    assert changed["key"]["member"] == "2"


async def test_nothing_comes_after_a_page_that_is_still_complete(edge: RunningEdge, alice: AsyncClient) -> None:
    put(edge, "1")
    page = (await alice.get(GROUP)).json()
    async with edge.socket("/v1/stream") as socket:
        began = await watch(socket, page["through"])
        put(edge, "2")
        changed = json.loads(await socket.recv())["range_changed"]

    assert (began["start"], began.get("members", 0)) == ("START_RECOVERED", 0)
    assert changed["key"]["member"] == "2"


async def test_an_empty_group_is_a_page_to_begin_after(edge: RunningEdge, alice: AsyncClient) -> None:
    page = (await alice.get(GROUP)).json()
    async with edge.socket("/v1/stream") as socket:
        began = await watch(socket, page["through"])
        put(edge, "1")
        changed = json.loads(await socket.recv())["range_changed"]

    assert page["states"] == []
    assert (began["start"], changed["key"]["member"]) == ("START_RECOVERED", "1")


@pytest.mark.parametrize("reverse", ["false", "true"])
async def test_only_a_page_that_holds_all_rows_can_be_begun_after(
    edge: RunningEdge, alice: AsyncClient, reverse: str
) -> None:
    for name in ("1", "2", "3"):
        put(edge, name)
    first = (await alice.get(GROUP, params={"limit": 2, "reverse": reverse})).json()
    rest = {"limit": 2, "reverse": reverse, "page_token": first["next_page_token"]}
    last = (await alice.get(GROUP, params=rest)).json()
    whole = (await alice.get(GROUP, params={"limit": 3, "reverse": reverse})).json()

    assert ("through" in first, "through" in last, "through" in whole) == (False, False, True)
