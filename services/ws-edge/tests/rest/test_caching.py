"""Answers about stores that everyone may read can be kept by caches; nobody keeps any other."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import grpc
import pytest
from httpx import AsyncClient

from statecast.orders.v1.order_pb2 import Order
from statecast.push.v2.push_pb2 import Channel, Ticket
from testkit.ws_edge.edge import RunningEdge
from ws_edge.model.authorization import OwnerRule
from ws_edge.model.states import Position, StoreKey
from ws_edge.model.stores import Store
from ws_edge.rest.caching import etag_of
from ws_edge.rest.row_pages import RowPage

STORES = """
stores:
  - {name: orders-by-key, message: statecast.orders.v1.Order, keeps: one, readers: everyone}
  - {name: orders-by-item, message: statecast.orders.v1.Order, keeps: members, readers: everyone}
  - {name: orders-by-customer, message: statecast.orders.v1.Order, keeps: members,
     readers: {field: customer_id, group: true}}
"""
KEY, GROUP = "/v1/stores/orders-by-key/rows?group=1", "/v1/stores/orders-by-item/rows?group=item-1"
PERSONAL = "/v1/stores/orders-by-customer/rows?group=customer-0001"
PUBLIC = "public, max-age=5, stale-while-revalidate=30"
NOT_KEPT = "private, no-store"
OWN = "private, no-cache"


def member(name: str, store: str = "orders-by-item", group: str = "item-1") -> StoreKey:
    return StoreKey(store, group, f"2024-08-28T12:00:0{name}.000000Z", name)


@asynccontextmanager
async def running(**settings: Any) -> AsyncIterator[tuple[RunningEdge, AsyncClient]]:
    """Runs an edge with two stores for everyone, each with a row, and one that is personal; calls of customer-0001."""
    async with RunningEdge(kafka=True, stores=STORES, **settings) as edge:
        edge.query.put(StoreKey("orders-by-key", "1"), Order(order_id="1"))
        edge.query.put(member("1"), Order(order_id="1"))
        own = member("1", "orders-by-customer", "customer-0001")
        edge.query.put(own, Order(order_id="1", customer_id="customer-0001"))
        async with edge.client() as client:
            yield edge, client


@pytest.mark.parametrize("path", [KEY, GROUP, "/update/orders/1"])
async def test_what_everyone_may_read_may_be_kept_for_a_time(path: str) -> None:
    async with running() as (_, client):
        answer = await client.get(path)

    assert (answer.status_code, answer.headers["Cache-Control"]) == (200, PUBLIC)
    assert answer.headers["ETag"]


@pytest.mark.parametrize("path", [KEY, GROUP, "/update/orders/1"])
async def test_a_copy_is_confirmed_until_a_row_changes(path: str) -> None:
    async with running() as (edge, client):
        etag = (await client.get(path)).headers["ETag"]
        edge.query.put(member("2", group="item-2"), Order(order_id="2"))
        same = await client.get(path, headers={"If-None-Match": f'"other", {etag}'})
        edge.query.put(StoreKey("orders-by-key", "1"), Order(order_id="1", total_cents=1))
        edge.query.put(member("2"), Order(order_id="2"))
        other = await client.get(path, headers={"If-None-Match": etag})

    assert (same.status_code, same.content) == (304, b"")
    assert (same.headers["ETag"], same.headers["Cache-Control"]) == (etag, PUBLIC)
    assert other.status_code == 200
    assert other.headers["ETag"] != etag


async def test_a_row_that_has_gone_or_follows_on_another_page_makes_another_copy() -> None:
    async with running() as (edge, client):
        etags = [(await client.get(GROUP + "&limit=1")).headers["ETag"]]
        edge.query.put(member("2"), Order(order_id="2"))
        etags.append((await client.get(GROUP + "&limit=1")).headers["ETag"])
        edge.query.delete(member("1"))
        edge.query.delete(member("2"))
        etags.append((await client.get(GROUP + "&limit=1")).headers["ETag"])

    assert len(set(etags)) == 3


async def test_an_answer_that_may_be_out_of_date_is_neither_kept_nor_does_it_confirm_a_copy() -> None:
    async with running() as (edge, client):
        etag = (await client.get(GROUP)).headers["ETag"]
        edge.query.lag_ms = 60_000
        answer = await client.get(GROUP, headers={"If-None-Match": etag})

    assert (answer.status_code, answer.headers["Cache-Control"]) == (200, NOT_KEPT)
    assert answer.json()["lag_s"] == 60


@pytest.mark.parametrize("lag_ms", [0, 60_000])
@pytest.mark.parametrize("path", [KEY, GROUP, PERSONAL, "/update/orders/1"])
async def test_a_replica_that_lags_confirms_a_copy_that_is_newer_than_its_row(path: str, lag_ms: int) -> None:
    async with running() as (edge, client):
        earlier, offset = dict(edge.query.held), edge.query.offset
        for key in earlier:
            owner = "customer-0001" if key.store == "orders-by-customer" else ""
            edge.query.put(key, Order(order_id="1", customer_id=owner, total_cents=1))
        etag = (await client.get(path)).headers["ETag"]
        edge.query.held, edge.query.offset, edge.query.lag_ms = earlier, offset, lag_ms
        copy = await client.get(path, headers={"If-None-Match": etag})
        edge.query.epoch += 1
        anew = await client.get(path, headers={"If-None-Match": etag})

    assert (copy.status_code, copy.headers["ETag"]) == (304, etag)
    assert anew.status_code == 200


async def test_a_copy_is_as_new_as_its_newest_row() -> None:
    async with running() as (edge, client):
        edge.query.put(member("1"), Order(order_id="1", total_cents=1))
        edge.query.offset -= 1  # as if the row was applied while the page was read
        etag = (await client.get(GROUP)).headers["ETag"]
        edge.query.held[member("1")].position.offset -= 1
        older = await client.get(GROUP, headers={"If-None-Match": etag})

    assert older.status_code == 304


def test_rows_of_another_message_are_another_copy() -> None:
    """A store that was listed with a wrong message is corrected while copies are about; both are in one file here."""
    page = RowPage([], (), "", 0, position=Position(1, 1))
    etags = {etag_of(Store("s", message, False, OwnerRule(None)), page) for message in (Ticket, Channel)}

    assert len(etags) == 2


async def test_a_replica_that_has_not_read_of_an_order_yet_confirms_the_copy_of_it() -> None:
    async with running() as (edge, client):
        edge.query.put(StoreKey("orders-by-key", "9"), Order(order_id="9"))
        etag = (await client.get("/update/orders/9")).headers["ETag"]
        del edge.query.held[StoreKey("orders-by-key", "9")]
        edge.query.offset -= 1
        lagging = await client.get("/update/orders/9", headers={"If-None-Match": etag})
        edge.query.offset += 1
        deleted = await client.get("/update/orders/9", headers={"If-None-Match": etag})

    assert (lagging.status_code, deleted.status_code) == (304, 404)


async def test_the_times_are_settings_and_zero_leaves_answers_to_their_callers() -> None:
    async with running(public_max_age_s=60, public_stale_s=0) as (_, client):
        longer = (await client.get(GROUP)).headers["Cache-Control"]
    async with running(public_max_age_s=0) as (_, client):
        never = (await client.get(GROUP)).headers["Cache-Control"]

    assert (longer, never) == ("public, max-age=60, stale-while-revalidate=0", OWN)


async def test_what_is_for_one_consumer_is_kept_by_nobody_else_and_checked_each_time() -> None:
    async with running() as (_, client):
        answer = await client.get(PERSONAL)
        same = await client.get(PERSONAL, headers={"If-None-Match": answer.headers["ETag"]})

    assert (answer.status_code, same.status_code) == (200, 304)
    assert {each.headers["Cache-Control"] for each in (answer, same)} == {OWN}


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/v1/consumer", 200),
        ("POST", "/v1/tickets", 200),
        ("POST", "/v1/channels", 201),
        ("GET", "/v1/channels/unknown", 404),
        ("GET", "/v1/stores/orders-by-customer/rows?group=customer-0002", 403),
        ("GET", "/update/orders/unknown", 404),
        ("GET", GROUP + "&limit=-1", 422),
        ("GET", "/v1/nothing", 404),
        ("GET", "/v1/edge", 200),
        ("GET", "/v1/shards", 200),
        ("POST", KEY, 405),
    ],
)
async def test_nobody_keeps_an_answer_without_an_etag(method: str, path: str, status: int) -> None:
    async with running() as (edge, client):
        is_for_staff = path in ("/v1/edge", "/v1/shards")
        answer = await client.request(method, path, headers=edge.headers("", "staff") if is_for_staff else {})

    assert (answer.status_code, answer.headers.get_list("Cache-Control")) == (status, [NOT_KEPT])


async def test_nobody_keeps_an_outage() -> None:
    async with running() as (edge, client):
        edge.query.failing = grpc.StatusCode.UNAVAILABLE
        answer = await client.get(GROUP)

    assert (answer.status_code, answer.headers["Cache-Control"]) == (503, NOT_KEPT)


async def test_pages_say_themselves_that_a_copy_must_be_checked() -> None:
    async with running() as (_, client):
        assert (await client.get("/")).headers.get_list("Cache-Control") == ["no-cache"]
