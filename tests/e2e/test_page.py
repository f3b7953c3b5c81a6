"""The pages for people, in a real browser, through the gateway."""

import asyncio
import re
from collections.abc import AsyncIterator

import pytest
from drivers.gateway_client import Gateway, TokenClient
from drivers.order_source import OrderSource
from drivers.pages import Visits, browser_at
from playwright.async_api import expect

from local_stack.running_stack import RunningStack
from statecast.orders.v1.order_pb2 import OrderStatus
from testkit.waiting import eventually, scaled

ALICE = "customer-0001"
FIRST_S, SECOND_S, LONG_S = 40, 30, 600
PHONE = {"viewport": {"width": 390, "height": 844}, "device_scale_factor": 2, "has_touch": True}


def is_refused(phone: TokenClient) -> None:
    """Asserts that the gateway refuses the phone's credential."""
    assert phone.get("/v1/consumer").status_code == 401


@pytest.fixture
async def visits(gateway: Gateway) -> AsyncIterator[Visits]:
    """A browser at the gateway."""
    async with browser_at(gateway.https) as opened:
        yield opened


@pytest.mark.timeout(240)
async def test_a_customer_watches_their_orders_and_the_loss_of_an_edge_does_not_end_it(
    visits: Visits, stack: RunningStack, source: OrderSource
) -> None:
    alice = await visits.person()
    await alice.sign_in("/", "Password", "alice-demo-password", "alice")
    await alice.sees_light("Live")
    order_id = (await asyncio.to_thread(source.place, ALICE, {"item-a": 2})).order_id
    card = alice.card(order_id)
    await alice.sees(card, "Placed")
    await alice.sees(card, "2 items")

    await asyncio.to_thread(source.advance, order_id, OrderStatus.ORDER_STATUS_SHIPPED, "1Z999")
    await alice.sees(card, "Shipped")
    await alice.sees(card, "1Z999")
    await expect(card).to_have_class("card fresh changed")
    await alice.picture("orders-light", moving=True)

    for edge in stack.file.edges:
        await asyncio.to_thread(stack.kill, edge.name)
    await alice.sees_light("Reconnecting")
    await alice.picture("orders-reconnecting")
    await alice.sees_light("Live")
    await asyncio.to_thread(source.advance, order_id, OrderStatus.ORDER_STATUS_DELIVERED)
    await alice.sees(card, "Delivered")
    await alice.sees(alice.page.get_by_role("status"), "is now")
    for edge in stack.file.edges:
        await asyncio.to_thread(stack.wait_ready, edge.name)


@pytest.mark.long
@pytest.mark.timeout(240)
async def test_a_token_is_renewed_in_the_open_page_and_when_it_was_too_late_the_page_resumes(
    visits: Visits, stack: RunningStack, source: OrderSource
) -> None:
    alice, first = await visits.person(), TokenClient(stack, "alice", FIRST_S)
    await alice.sign_in("/", "Token", first.token)
    await alice.page.evaluate("window.begun = true")
    order_id = (await asyncio.to_thread(source.place, ALICE, {"item-a": 1})).order_id
    card = alice.card(order_id)
    await alice.sees(card, "Placed")
    await expect(alice.banner).to_contain_text("Your sign-in ends in", timeout=scaled(2 * FIRST_S) * 1000)
    await alice.pictures("renewal-in-time")
    await alice.renew(TokenClient(stack, "alice", SECOND_S).token)
    await expect(alice.banner).to_be_hidden()
    await asyncio.to_thread(eventually, lambda: is_refused(first), FIRST_S)
    await asyncio.to_thread(source.advance, order_id, OrderStatus.ORDER_STATUS_PAID)
    await alice.sees(card, "Paid")

    assert alice.sockets == 1, "the socket that the first token has opened"

    await expect(alice.banner).to_contain_text("Your sign-in has ended", timeout=scaled(2 * SECOND_S) * 1000)
    await alice.sees_light("Paused")
    await asyncio.to_thread(source.advance, order_id, OrderStatus.ORDER_STATUS_SHIPPED)
    await alice.sees(card, "Paid")
    await alice.pictures("renewal-too-late")
    await alice.renew(TokenClient(stack, "alice", LONG_S).token)
    await alice.sees(card, "Shipped")
    await alice.sees_light("Live")

    assert await alice.page.evaluate("window.begun"), "the page was loaded anew"
    assert alice.sockets == 2
    assert alice.complaints == []


async def test_wrong_credentials_are_said_so_and_can_be_corrected(visits: Visits) -> None:
    alice = await visits.person(color_scheme="dark")
    await alice.sign_in("/", "API key", "not-a-key")
    await alice.sees(alice.page.get_by_role("alert"), "not accepted")
    await alice.picture("sign-in-refused-dark")

    await alice.try_again("alice-demo-key")
    await alice.sees_light("Live")
    await alice.page.locator(".card .status").first.wait_for()
    await alice.picture("orders-dark")
    await alice.page.reload()
    await alice.sees_light("alice")
    await alice.page.get_by_role("button", name="Sign out").click()

    await expect(alice.page.get_by_role("button", name="Sign in")).to_be_visible()


async def test_the_page_fits_a_phone(visits: Visits) -> None:
    alice = await visits.person(**PHONE)
    await alice.page.goto("/")
    await alice.page.get_by_role("button", name="Sign in").wait_for()
    await alice.picture("sign-in-phone")
    await alice.sign_in("/", "Password", "alice-demo-password", "alice")
    await alice.page.locator(".card .status").first.wait_for()
    await alice.sees_light("Live")
    width = await alice.page.evaluate("document.documentElement.scrollWidth")
    await alice.picture("orders-phone")

    assert width == 390
    assert alice.complaints == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_an_operator_sees_edges_shards_and_freshness(visits: Visits, stack: RunningStack, scheme: str) -> None:
    alice, operator = await visits.person(), await visits.person(color_scheme=scheme)
    await alice.sign_in("/", "API key", "alice-demo-key")
    await operator.sign_in("/operator", "API key", "operator-demo-key")
    await operator.sees_light("Live")
    for edge in stack.file.edges:
        await operator.sees(operator.page.get_by_role("region", name="Edges"), edge.name)
    shards = operator.page.get_by_role("region", name="Shards")
    for store in ("orders-by-key", "orders-by-customer"):
        await operator.sees(shards, store)
    for query in stack.file.queries:
        await operator.sees(shards, query.name)
    chart = operator.page.get_by_role("img", name="From commit to frame")
    await expect(chart).to_have_accessible_name(re.compile("half within"), timeout=60_000)
    await operator.picture(f"operator-{scheme}", whole=True)

    assert alice.complaints + operator.complaints == []


async def test_each_page_sends_the_others_on(visits: Visits) -> None:
    alice, operator = await visits.person(), await visits.person()
    await alice.sign_in("/operator", "API key", "alice-demo-key")
    await operator.sign_in("/", "API key", "operator-demo-key")

    await expect(alice.page.get_by_role("link", name="Go to what is yours")).to_be_visible()
    await expect(operator.page.get_by_role("link", name="Operations")).to_be_visible()


async def test_developers_read_the_interface_without_signing_in(visits: Visits) -> None:
    developer = await visits.person()
    await developer.page.goto("/docs")
    await developer.sees(developer.page.get_by_role("region", name="Sockets", exact=True), "/update/orders/{order_id}")
    await developer.page.get_by_text("GET /update/orders/{order_id}").click()
    await developer.sees(developer.page.locator("details[open]"), "OrderUpdatesReply")
    await developer.picture("interface")

    assert developer.complaints == []
