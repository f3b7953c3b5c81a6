"""Calls that are answered once say the same as sockets do, and refuse the same."""

import asyncio
import json
from base64 import urlsafe_b64decode
from typing import Any
from urllib.parse import quote

import grpc
import pytest
from httpx import AsyncClient

from statecast.orders.v1.order_pb2 import Order, OrderStatus
from statecast.query.v1 import query_pb2
from testkit.ws_edge.edge import RunningEdge
from ws_edge.http import rest
from ws_edge.http.rest import OrderUpdatesReply, PageDocument, StateDocument
from ws_edge.http.staff_rest import EdgeDocument, ShardMapDocument, StoreDocument
from ws_edge.model.states import KeyState, Position, StoreKey

KEY = StoreKey("orders-by-key", "12345")
dumps = json.dumps
ORDER = Order(order_id="12345", customer_id="customer-0001", status=OrderStatus.ORDER_STATUS_SHIPPED)
GROUP = "/v1/stores/orders-by-customer/groups/customer-0001"


def member(day: int, customer: str = "customer-0001") -> StoreKey:
    return StoreKey("orders-by-customer", customer, f"2024-08-{day:02}T12:00:00.000000Z", f"order-{day}")


def fill(edge: RunningEdge, days: int) -> None:
    for day in range(1, days + 1):
        edge.query.put(member(day), Order(order_id=f"order-{day}", customer_id="customer-0001", total_cents=day))


async def test_an_order_is_answered_in_the_form_of_its_frame(edge: RunningEdge, alice: AsyncClient) -> None:
    edge.query.put(KEY, ORDER)
    answer = await alice.get("/update/orders/12345")

    assert answer.status_code == 200
    document = OrderUpdatesReply.model_validate(answer.json())
    assert (document.data.status, document.position.offset) == ("Shipped", "1")


async def test_the_etag_is_the_position_and_an_unchanged_copy_is_not_sent_again(
    edge: RunningEdge, alice: AsyncClient
) -> None:
    edge.query.put(KEY, ORDER)
    etag = (await alice.get("/update/orders/12345")).headers["ETag"]
    unchanged = await alice.get("/update/orders/12345", headers={"If-None-Match": f'"other", {etag}'})
    edge.query.put(KEY, ORDER)
    changed = await alice.get("/update/orders/12345", headers={"If-None-Match": etag})

    assert etag == '"7-1"'
    assert (unchanged.status_code, unchanged.content) == (304, b"")
    assert (changed.status_code, changed.headers["ETag"]) == (200, '"7-2"')
    assert changed.headers["Cache-Control"] == "private, no-cache"


async def test_a_state_is_answered_with_its_row(edge: RunningEdge, alice: AsyncClient) -> None:
    edge.query.put(KEY, ORDER)
    answer = await alice.get("/v1/stores/orders-by-key/12345")

    document = StateDocument.model_validate(answer.json())
    assert document.key.group == "12345"
    assert document.row["status"] == "ORDER_STATUS_SHIPPED"


async def test_a_group_is_read_in_order_a_page_at_a_time(edge: RunningEdge, alice: AsyncClient) -> None:
    fill(edge, 5)
    first = PageDocument.model_validate((await alice.get(GROUP, params={"limit": 3})).json())
    rest: dict[str, str | int] = {"limit": 3, "page_token": first.next_page_token}
    second = PageDocument.model_validate((await alice.get(GROUP, params=rest)).json())
    days = [state.key.member for state in first.states + second.states]

    assert days == [f"order-{day}" for day in range(1, 6)]
    assert second.next_page_token == ""


async def test_a_range_of_a_group_is_read_and_backwards(edge: RunningEdge, alice: AsyncClient) -> None:
    fill(edge, 5)
    params = {"from": member(2).sort, "to": member(4).sort, "reverse": "true"}
    page = (await alice.get(GROUP, params=params)).json()

    assert [state["key"]["member"] for state in page["states"]] == ["order-3", "order-2"]


async def test_a_row_of_somebody_else_in_an_own_group_is_left_out(edge: RunningEdge, alice: AsyncClient) -> None:
    edge.query.put(member(1), Order(order_id="order-1", customer_id="customer-0002"))
    fill_day_two = Order(order_id="order-2", customer_id="customer-0001")
    edge.query.put(member(2), fill_day_two)
    page = (await alice.get(GROUP)).json()

    assert [state["key"]["member"] for state in page["states"]] == ["order-2"]


async def test_a_page_token_does_not_name_the_last_row_which_may_be_hidden(
    edge: RunningEdge, alice: AsyncClient
) -> None:
    edge.query.put(member(1), Order(order_id="order-1", customer_id="customer-0002"))
    edge.query.put(member(2), Order(order_id="order-2", customer_id="customer-0001"))
    page = (await alice.get(GROUP, params={"limit": 1})).json()
    token = page["next_page_token"]
    rest = (await alice.get(GROUP, params={"limit": 1, "page_token": token})).json()
    forged = await alice.get(GROUP, params={"limit": 1, "page_token": token[:-2] + "AA"})

    assert page["states"] == []
    assert b"order-1" not in urlsafe_b64decode(token + "===") + token.encode()
    assert [state["key"]["member"] for state in rest["states"]] == ["order-2"]
    assert rest["next_page_token"] == ""
    assert forged.json()["error"]["code"] == "malformed_frame"


@pytest.mark.parametrize(
    ("path", "status", "code"),
    [
        ("/update/orders/54321", 404, "not_found"),
        ("/v1/stores/orders-by-key/54321", 404, "not_found"),
        ("/v1/stores/orders-by-customer/groups/customer-0002", 403, "forbidden"),
        ("/v1/stores/orders-by-item/groups/item-1", 403, "forbidden"),
        ("/v1/shards", 403, "forbidden"),
        ("/update/orders/nothing", 404, "not_found"),
        ("/v1/stores/orders-by-key/nothing", 404, "not_found"),
        ("/v1/stores/order-by-key/1", 404, "unknown_store"),
        ("/v1/stores/orders-by-customer/customer-0001", 400, "malformed_frame"),
        ("/v1/stores/orders-by-key/groups/12345", 400, "malformed_frame"),
        (GROUP + "?page_token=forged", 400, "malformed_frame"),
        (GROUP + "?from=a%00b", 400, "malformed_frame"),
        (GROUP + "?limit=0", 422, "wrong_parameter"),
        (GROUP + "?limit=100000", 422, "wrong_parameter"),
        (GROUP + "?reverse=perhaps", 422, "wrong_parameter"),
    ],
)
async def test_a_call_that_cannot_be_answered_is_refused_with_its_reason(
    edge: RunningEdge, alice: AsyncClient, path: str, status: int, code: str
) -> None:
    edge.query.put(StoreKey("orders-by-key", "54321"), Order(order_id="54321", customer_id="customer-0002"))
    answer = await alice.get(path)

    assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)
    assert answer.json()["error"]["message"]


@pytest.mark.parametrize("name", ["a/b", "/", "groups/x", "a%2Fb", "a/../b", "é/b"])
async def test_a_key_with_a_slash_is_read_by_its_encoded_name(edge: RunningEdge, alice: AsyncClient, name: str) -> None:
    edge.query.put(StoreKey("orders-by-key", name), Order(order_id=name, customer_id="customer-0001"))
    edge.query.put(StoreKey("orders-by-key", "b"), Order(order_id="b", customer_id="customer-0001"))
    encoded = quote(name, safe="")
    order = await alice.get(f"/update/orders/{encoded}")
    state = await alice.get(f"/v1/stores/orders-by-key/{encoded}")

    assert order.json()["data"]["order_id"] == name
    assert state.json()["key"] == {"group": name}


async def test_a_group_with_a_slash_is_read_by_its_encoded_name(edge: RunningEdge, operator: AsyncClient) -> None:
    edge.query.put(StoreKey("orders-by-item", "a/groups/b", "1", "order-1"), Order(order_id="order-1"))
    page = await operator.get(f"/v1/stores/orders-by-item/groups/{quote('a/groups/b', safe='')}")

    assert [state["key"]["group"] for state in page.json()["states"]] == ["a/groups/b"]


@pytest.mark.parametrize("path", ["/update/orders/a%00b", "/v1/stores/orders-by-key/a%2Fb%00"])
async def test_a_nul_in_a_path_is_no_slash(alice: AsyncClient, path: str) -> None:
    answer = await alice.get(path)

    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "malformed_frame")


@pytest.mark.parametrize("path", ["/update/orders/", "/v1/stores/orders-by-key/"])
@pytest.mark.parametrize("headers", [{}, {"If-None-Match": '"7-1"'}, {"If-None-Match": "*"}])
async def test_what_is_deleted_or_somebody_elses_or_unknown_has_one_answer(
    edge: RunningEdge, alice: AsyncClient, path: str, headers: dict[str, str]
) -> None:
    names = ("theirs", "gone", "none", "bad")
    keys = [StoreKey("orders-by-key", name) for name in names]
    edge.query.put(keys[0], Order(order_id="theirs", customer_id="customer-0002"))
    edge.query.put(keys[1], ORDER)
    edge.query.delete(keys[1])
    edge.query.put(keys[3], ORDER)
    edge.query.held[keys[3]].payload = b"\xff"  # type: ignore[union-attr]
    answers = [await alice.get(path + name, headers=headers) for name in names]

    assert {each.status_code for each in answers} == {404}
    assert len({each.text.replace(name, "") for each, name in zip(answers, names, strict=True)}) == 1
    assert len({tuple(sorted({*each.headers} - {"date"})) for each in answers}) == 1
    assert "etag" not in answers[0].headers


async def test_staff_hear_that_a_row_was_deleted(edge: RunningEdge, operator: AsyncClient) -> None:
    edge.query.put(KEY, ORDER)
    edge.query.delete(KEY)
    answer = await operator.get("/update/orders/12345")

    assert answer.status_code == 404
    assert "was deleted" in answer.json()["error"]["message"]


async def test_staff_see_every_row_and_the_shard_map(edge: RunningEdge, operator: AsyncClient) -> None:
    edge.query.put(KEY, ORDER)
    shards = ShardMapDocument.model_validate((await operator.get("/v1/shards")).json())

    assert (await operator.get("/update/orders/12345")).status_code == 200
    assert (await operator.get("/v1/stores/orders-by-item/groups/item-1")).json()["states"] == []
    assert {store.store for store in shards.stores} >= {"orders-by-key", "orders-by-customer", "orders-by-item"}
    assert all(shard.replicas[0].address == edge.query.address for shard in shards.shards)


def test_the_listing_of_stores_has_every_field_of_the_contract() -> None:
    assert {*StoreDocument.model_fields} == {*query_pb2.Store.DESCRIPTOR.fields_by_name}


async def test_without_the_gateways_secret_nothing_is_answered(edge: RunningEdge) -> None:
    async with AsyncClient(base_url=f"http://{edge.address}", verify=False) as stranger:
        for path in ("/update/orders/12345", "/v1/stores/orders-by-key/12345", GROUP, "/v1/shards"):
            answer = await stranger.get(path, headers={"X-Consumer-Custom-ID": "customer-0001"})

            assert (answer.status_code, answer.json()["error"]["code"]) == (403, "gateway_required")


async def test_while_the_query_service_fails_calls_answer_503_with_retry_after(
    edge: RunningEdge, alice: AsyncClient
) -> None:
    edge.query.failing = grpc.StatusCode.UNAVAILABLE
    for path in ("/update/orders/12345", GROUP):
        answer = await alice.get(path)

        assert (answer.status_code, answer.json()["error"]["code"]) == (503, "unavailable")
        assert answer.headers["Retry-After"] == "1"


async def test_every_consumer_may_read_its_own_identity(alice: AsyncClient, operator: AsyncClient) -> None:
    customer, staff = (await alice.get("/v1/consumer")).json(), (await operator.get("/v1/consumer")).json()

    assert (customer["id"], customer["staff"]) == ("customer-0001", False)
    assert (staff["id"], staff["staff"]) == ("", True)


async def test_the_report_of_an_edge_is_for_staff(alice: AsyncClient) -> None:
    answer = await alice.get("/v1/edge")

    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "forbidden")


async def test_the_report_counts_what_the_edge_does(edge: RunningEdge, operator: AsyncClient) -> None:
    before = (await operator.get("/v1/edge")).json()
    async with edge.socket(f"/update/orders/{KEY.group}") as socket:
        await socket.recv()
        during = (await operator.get("/v1/edge")).json()

    EdgeDocument.model_validate(during)
    assert (before["sockets"], during["sockets"], during["subscriptions"], during["unique_keys"]) == (0, 1, 1, 1)
    assert during["totals"]["frames_sent"] == before["totals"]["frames_sent"] + 1
    assert during["totals"]["polled_keys"] > before["totals"]["polled_keys"]
    assert during["instance"] == edge.address
    assert during["uptime_s"] > before["uptime_s"]


async def test_a_copy_is_confirmed_without_a_row_being_written(
    edge: RunningEdge, alice: AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(edge, 3)
    etag = (await alice.get(GROUP)).headers["ETag"]
    written = list[KeyState]()
    monkeypatch.setattr(rest, "state_document", written.append)
    answer = await alice.get(GROUP, headers={"If-None-Match": etag})

    assert answer.status_code == 304
    assert not written


async def test_others_have_their_turns_while_a_page_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each row is written once: a page that is made of rows and written as a whole keeps others waiting for that."""
    written = list[int]()

    def dumps_and_note(*arguments: Any, **more: Any) -> str:
        written.append(len(text := dumps(*arguments, **more)))
        return text

    monkeypatch.setattr(json, "dumps", dumps_and_note)
    rows = [KeyState(member(1), Position(7, number), Order(order_id="1")) for number in range(rest.MAX_PAGE)]
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    other = asyncio.create_task(count())
    body = await rest.page_body(rows, {"next_page_token": ""})
    other.cancel()

    assert len(json.loads(body)["states"]) == rest.MAX_PAGE
    assert sum(written) < len(body)
    assert max(written) < len(body) / 100
    assert turns >= rest.MAX_PAGE // rest.ROWS_AT_ONCE
