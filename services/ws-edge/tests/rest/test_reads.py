"""Reads by REST show and refuse the same rows as sockets; the token of a page begins a watch."""

import json
from base64 import urlsafe_b64decode
from typing import Any
from urllib.parse import quote

import grpc
import pytest
from google.protobuf import json_format
from httpx import AsyncClient

from statecast.orders.v1.order_pb2 import Order, OrderStatus
from statecast.push.v2.push_pb2 import Page
from testkit.turns import counted_turns
from testkit.ws_edge.edge import RunningEdge, until
from ws_edge.codec import bodies
from ws_edge.model.states import KeyState, Position, StoreKey
from ws_edge.rest import reads
from ws_edge.rest.row_pages import ROWS_AT_ONCE, RowPage, page_body

KEY = StoreKey("orders-by-key", "12345")
ALICE = "customer-0001"
ORDER = Order(order_id="12345", customer_id=ALICE, status=OrderStatus.ORDER_STATUS_SHIPPED)
GROUP = f"/v1/stores/orders-by-customer/rows?group={ALICE}"
ONE = "/v1/stores/orders-by-key/rows?group="
ALL = "/v1/stores/orders-by-customer/rows"


def member(day: int, customer: str = ALICE) -> StoreKey:
    return StoreKey("orders-by-customer", customer, f"2024-08-{day:02}T12:00:00.000000Z", f"order-{day}")


def put(edge: RunningEdge, *days: int, customer: str = ALICE, owner: str = "") -> None:
    for day in days:
        row = Order(order_id=f"order-{day}", customer_id=owner or customer, total_cents=day)
        edge.query.put(member(day, customer), row)


async def pages(client: AsyncClient, **params: str | int) -> list[list[str]]:
    """Reads all pages; returns the keys of each."""
    read, token = list[list[str]](), ""
    while True:
        answer = await client.get(ALL, params={**params, "page_token": token})
        page = json_format.ParseDict(answer.json(), Page())
        read.append([row.key for row in page.rows])
        if not (token := page.next_page_token):
            return read


async def test_a_row_has_every_field_without_presence(edge: RunningEdge, alice: AsyncClient) -> None:
    edge.query.put(KEY, ORDER)
    [row] = (await alice.get(ONE + "12345")).json()["rows"]

    assert row["row"]["status"] == "ORDER_STATUS_SHIPPED"
    assert (row["row"]["tracking_number"], row["row"]["items"]) == ("", [])


async def test_a_group_is_read_in_order_a_page_at_a_time(edge: RunningEdge, alice: AsyncClient) -> None:
    put(edge, 1, 2, 3, 4, 5)
    window = {"sort_from": member(2).sort, "sort_to": member(4).sort}

    assert await pages(alice, group=ALICE, limit=3) == [["order-1", "order-2", "order-3"], ["order-4", "order-5"]]
    assert await pages(alice, group=ALICE, reverse="true", **window) == [["order-3", "order-2"]]


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("sort_form=2024", "sort_form: GET /v1/stores/{store}/rows takes no such parameter; did you mean sort_from?"),
        ("limit=1&limit=2", "limit: it is there twice"),
    ],
)
async def test_a_parameter_that_would_be_ignored_is_refused(alice: AsyncClient, query: str, reason: str) -> None:
    answer = await alice.get(f"{GROUP}&{query}")
    error = answer.json()["error"]

    assert (answer.status_code, error["code"]) == (422, "wrong_parameter")
    assert reason in error["message"]


@pytest.mark.parametrize("path", ["/v1/consumer", "/v1/stores", "/v1/channels/q1"])
async def test_calls_without_parameters_take_none(alice: AsyncClient, path: str) -> None:
    answer = await alice.get(path, params={"limit": 1})

    assert answer.status_code == 422
    assert answer.json()["error"]["message"].startswith("limit: ")


async def test_only_the_fields_that_are_asked_for_are_answered(edge: RunningEdge, alice: AsyncClient) -> None:
    put(edge, 1)
    [row] = (await alice.get(GROUP + "&fields=order_id&fields=total_cents")).json()["rows"]

    assert row == {"key": "order-1", "sort": member(1).sort, "row": {"order_id": "order-1", "total_cents": "1"}}


async def test_staff_read_all_groups_in_the_order_of_their_keys(edge: RunningEdge, operator: AsyncClient) -> None:
    for number in (5, 2, 1, 6, 4, 3):
        put(edge, number, customer=f"customer-{(number - 1) // 2}")
    orders = [f"order-{number}" for number in range(1, 7)]
    window = {"sort_from": "2024-08-02", "sort_to": "2024-08-05"}
    page = (await operator.get(ALL, params={"limit": 1})).json()

    assert await pages(operator) == [orders]
    assert await pages(operator, limit=4, reverse="true") == [orders[:1:-1], orders[1::-1]]
    assert await pages(operator, group_from="customer-1", **window) == [orders[2:4]]
    assert await pages(operator, group_to="customer-1", limit=1) == [["order-1"], ["order-2"]]
    assert page["rows"][0]["group"] == "customer-0"
    assert "token" not in page
    assert "customer" not in page["next_page_token"]


async def test_customers_read_all_groups_only_of_stores_for_everyone(edge: RunningEdge, alice: AsyncClient) -> None:
    refused = await alice.get(ALL)
    edge.query.define(
        "stores: [{name: orders-by-customer, message: statecast.orders.v1.Order, keeps: members, readers: everyone}]"
    )
    await until(lambda: edge.parts.live_stores.stores["orders-by-customer"].rule.everyone)
    put(edge, 1, 2, customer="customer-9")

    assert (refused.status_code, refused.json()["error"]["code"]) == (403, "forbidden")
    assert await pages(alice) == [["order-1", "order-2"]]


async def test_a_page_token_does_not_name_the_last_row_which_may_be_hidden(
    edge: RunningEdge, alice: AsyncClient
) -> None:
    put(edge, 1, owner="customer-0002")
    put(edge, 2)
    page = (await alice.get(GROUP + "&limit=1")).json()
    token = page["next_page_token"]
    rest = (await alice.get(f"{GROUP}&limit=1&page_token={token}")).json()
    forged = await alice.get(f"{GROUP}&limit=1&page_token={token[:-2]}AA")

    assert page["rows"] == []
    assert b"order-1" not in urlsafe_b64decode(token + "===") + token.encode()
    assert [row["key"] for row in rest["rows"]] == ["order-2"]
    assert rest["next_page_token"] == ""
    assert forged.json()["error"]["code"] == "malformed_frame"


@pytest.mark.parametrize(
    ("path", "status", "code"),
    [
        ("/update/orders/54321", 404, "not_found"),
        ("/update/orders/nothing", 404, "not_found"),
        ("/update/orders/a%00b", 400, "malformed_frame"),
        ("/v1/stores/orders-by-customer/rows?group=customer-0002", 403, "forbidden"),
        ("/v1/stores/orders-by-item/rows?group=item-1", 404, "unknown_store"),
        ("/v1/stores/order-by-key/rows?group=1", 404, "unknown_store"),
        ("/v1/stores/orders-by-key/rows?group=", 400, "malformed_watch"),
        (ONE + "1&sort_from=a", 400, "malformed_watch"),
        (ONE + "1&group_from=a", 400, "malformed_frame"),
        (ONE + "1&fields=colour", 400, "malformed_watch"),
        (GROUP + "&page_token=forged", 400, "malformed_frame"),
        (GROUP + "&sort_from=a%00b", 400, "malformed_watch"),
        (GROUP + "&sort_to=" + "a" * 1025, 400, "malformed_watch"),
        (GROUP + "&limit=100000", 422, "wrong_parameter"),
        (GROUP + "&reverse=perhaps", 422, "wrong_parameter"),
        ("/v1/shards", 403, "forbidden"),
    ],
)
async def test_a_call_that_cannot_be_answered_is_refused_with_its_reason(
    edge: RunningEdge, alice: AsyncClient, path: str, status: int, code: str
) -> None:
    edge.query.put(StoreKey("orders-by-key", "54321"), Order(order_id="54321", customer_id="customer-0002"))
    answer = await alice.get(path)

    assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)
    assert answer.json()["error"]["message"]


@pytest.mark.parametrize("name", ["a/b", "/", "rows", "a%2Fb", "a/../b", "é/b"])
async def test_a_key_with_a_slash_is_a_value_like_any_other(edge: RunningEdge, alice: AsyncClient, name: str) -> None:
    edge.query.put(StoreKey("orders-by-key", name), Order(order_id=name, customer_id=ALICE))
    encoded = quote(name, safe="")
    order = await alice.get(f"/update/orders/{encoded}")
    [row] = (await alice.get(ONE + encoded)).json()["rows"]

    assert order.json()["data"]["order_id"] == row["row"]["order_id"] == name


@pytest.mark.parametrize("headers", [{}, {"If-None-Match": '"7-1"'}])
async def test_deleted_and_somebody_elses_and_unknown_rows_have_one_answer(
    edge: RunningEdge, alice: AsyncClient, headers: dict[str, str]
) -> None:
    names = ("theirs", "gone", "none")
    keys = [StoreKey("orders-by-key", name) for name in names]
    edge.query.put(keys[0], Order(order_id="theirs", customer_id="customer-0002"))
    edge.query.put(keys[1], ORDER)
    edge.query.delete(keys[1])
    orders = [await alice.get(f"/update/orders/{name}", headers=headers) for name in names]
    rows = [(await alice.get(ONE + name, headers=headers)).json() for name in names]

    assert {each.status_code for each in orders} == {404}
    assert len({each.text.replace(name, "") for each, name in zip(orders, names, strict=True)}) == 1
    assert {(len(page["rows"]), page["next_page_token"], "token" in page) for page in rows} == {(0, "", True)}


async def test_without_the_gateways_secret_nothing_is_answered(edge: RunningEdge) -> None:
    async with edge.client(headers={}) as stranger:
        for path in ("/update/orders/12345", "/v1/stores", GROUP, "/v1/shards"):
            answer = await stranger.get(path, headers={"X-Consumer-Custom-ID": ALICE})

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

    assert (customer["id"], customer["staff"]) == (ALICE, False)
    assert (staff["id"], staff["staff"]) == ("", True)


async def test_each_consumer_is_told_the_stores_that_it_may_read(alice: AsyncClient, operator: AsyncClient) -> None:
    mine = {each["store"]: each for each in (await alice.get("/v1/stores")).json()["stores"]}
    all_stores = {each["store"] for each in (await operator.get("/v1/stores")).json()["stores"]}
    by_key = mine["orders-by-key"]

    assert (by_key["message"], by_key["keeps"]) == ("statecast.orders.v1.Order", "one")
    assert (by_key["readers"], by_key["owner_field"], by_key["group_is_owner"]) == ("owner", "customer_id", False)
    assert (mine["odds-by-match"]["readers"], mine["odds-by-match"]["keeps"]) == ("everyone", "members")
    assert {*mine} < all_stores
    assert "orders-by-item" in all_stores - {*mine}


@pytest.mark.parametrize("rows", [0, 2])
async def test_a_watch_goes_on_from_the_token_of_a_page(edge: RunningEdge, alice: AsyncClient, rows: int) -> None:
    put(edge, *range(1, rows + 1))
    page = (await alice.get(GROUP)).json()
    put(edge, 9)
    watch = {"id": 1, "store": "orders-by-customer", "group": ALICE, "token": page["token"], "interval_ms": 0}
    async with edge.socket("/v1/stream") as socket:
        await socket.recv()
        await socket.send(json.dumps({"watch": [watch]}))
        frames = [json.loads(await socket.recv())]
        while not frames[-1].get("current"):
            frames.append(json.loads(await socket.recv()))

    assert frames[0]["watching"]["resumed"]
    assert [row["row"]["order_id"] for frame in frames for row in frame.get("rows", ())] == ["order-9"]


async def test_only_a_page_of_all_rows_has_a_token(edge: RunningEdge, alice: AsyncClient) -> None:
    put(edge, 1, 2, 3)
    first = (await alice.get(GROUP + "&limit=2")).json()
    last = (await alice.get(f"{GROUP}&limit=2&page_token={first['next_page_token']}")).json()
    whole = (await alice.get(GROUP + "&limit=3")).json()

    assert ("token" in first, "token" in last, "token" in whole) == (False, False, True)


async def test_a_copy_is_confirmed_without_a_row_being_written(
    edge: RunningEdge, alice: AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(edge, 1, 2, 3)
    etag = (await alice.get(GROUP)).headers["ETag"]
    written = list[RowPage]()
    monkeypatch.setattr(reads, "page_body", written.append)
    answer = await alice.get(GROUP, headers={"If-None-Match": etag})

    assert answer.status_code == 304
    assert not written


async def test_others_have_their_turns_while_a_page_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows are written one by one. A page that is written as a whole would keep other tasks waiting."""
    written, json_bytes = list[int](), bodies.json_bytes

    def write_and_note(value: Any) -> bytes:
        written.append(len(text := json_bytes(value)))
        return text

    monkeypatch.setattr(bodies, "json_bytes", write_and_note)
    rows = [KeyState(member(1), Position(7, number), Order(order_id="1")) for number in range(reads.MAX_PAGE)]
    page = RowPage(rows, (), "", 0)
    async with counted_turns() as turns:
        body = await page_body(page)

    assert len(json.loads(body)["rows"]) == reads.MAX_PAGE
    assert sum(written) < len(body)
    assert max(written) < len(body) / 100
    assert turns.count >= reads.MAX_PAGE // ROWS_AT_ONCE
