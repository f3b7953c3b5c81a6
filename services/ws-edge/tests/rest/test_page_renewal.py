"""The pages while a sign-in ends: they ask for another token, and go on without a reload."""

import time
from collections.abc import AsyncIterator

import pytest
from playwright.async_api import BrowserContext, Page, Route, expect

from statecast.orders.v1.order_pb2 import Order, OrderStatus
from testkit.chromium import chromium
from testkit.waiting import scaled
from testkit.ws_edge.edge import RunningEdge, SystemClock
from ws_edge.model.states import StoreKey

MEMBER = StoreKey("orders-by-customer", "customer-0001", "2024-08-28T12:34:56.123456Z", "order-1")
SOON_S, SOONER_S, LATER_S = scaled(20), scaled(3), 3600.0


class Tab:
    """A tab of customer-0001 that the gateway lets in with a token; `sockets` counts the sockets it has opened."""

    def __init__(self, edge: RunningEdge, context: BrowserContext, page: Page) -> None:
        self._edge, self._context, self.page = edge, context, page
        self.sockets = 0
        self.banner = page.get_by_role("form", name="Your sign-in")
        self.card = page.get_by_role("listitem").filter(has_text="order-1")
        page.on("websocket", lambda _: self._count())

    async def is_given_a_token(
        self, seconds: float, consumer: str = "customer-0001", groups: str = "customers"
    ) -> None:
        """Makes the gateway send the headers of another token from now on."""
        headers = self._edge.headers(consumer, groups, expires_at=time.time() + seconds)
        await self._context.set_extra_http_headers(headers)

    async def signs_in(self, path: str = "/") -> None:
        await self.page.goto(path)
        await self.page.get_by_role("radio", name="Token").check()
        await self.page.locator("input[type=password]").fill("any: the edge leaves tokens to the gateway")
        await self.page.keyboard.press("Enter")

    async def renews(self) -> None:
        await self.banner.get_by_label("New token").fill("another")
        await self.page.keyboard.press("Enter")

    def put(self, status: "OrderStatus.ValueType") -> None:
        """Changes the order."""
        row = Order(order_id="order-1", customer_id="customer-0001", status=status, currency="EUR", total_cents=1250)
        self._edge.query.put(MEMBER, row)

    def _count(self) -> None:
        self.sockets += 1


@pytest.fixture
async def tab() -> AsyncIterator[Tab]:
    async with RunningEdge(wall_clock=SystemClock()) as edge, chromium() as browser:
        context = await browser.new_context(base_url=f"http://{edge.address}")
        opened = Tab(edge, context, await context.new_page())
        opened.put(OrderStatus.ORDER_STATUS_PLACED)
        yield opened


@pytest.mark.long
async def test_a_token_is_renewed_in_time_without_another_socket(tab: Tab) -> None:
    await tab.is_given_a_token(SOON_S)
    await tab.signs_in()
    await expect(tab.card).to_contain_text("Placed")
    await tab.page.get_by_role("button", name="Sign out").focus()
    await expect(tab.banner).to_contain_text("ends in", timeout=scaled(30) * 1000)
    await expect(tab.page.get_by_role("status")).to_contain_text("Your sign-in ends in")
    await expect(tab.page.get_by_role("button", name="Sign out")).to_be_focused()
    await tab.is_given_a_token(LATER_S)
    await tab.renews()
    await expect(tab.banner).to_be_hidden()
    await expect(tab.page.get_by_role("status")).to_have_text("Your sign-in is renewed.")
    tab.put(OrderStatus.ORDER_STATUS_PAID)

    await expect(tab.card).to_contain_text("Paid")
    await expect(tab.page.locator("#session")).to_contain_text("Live")
    assert tab.sockets == 1


async def test_after_a_late_renewal_the_page_resumes_where_it_was(tab: Tab) -> None:
    await tab.is_given_a_token(SOONER_S)
    await tab.signs_in()
    await expect(tab.card).to_contain_text("Placed")
    await expect(tab.banner).to_contain_text("has ended", timeout=scaled(30) * 1000)
    await expect(tab.banner.get_by_label("New token")).to_be_focused()
    await expect(tab.page.locator("#session")).to_contain_text("Paused")
    await expect(tab.card).to_contain_text("Placed")
    tab.put(OrderStatus.ORDER_STATUS_PAID)
    card = await tab.card.element_handle()
    await tab.is_given_a_token(LATER_S)
    await tab.renews()

    await expect(tab.card).to_contain_text("Paid")
    await expect(tab.banner).to_be_hidden()
    await expect(tab.page.locator("#session")).to_contain_text("Live")
    assert card is not None
    assert await card.evaluate("(card) => card.isConnected"), "the same card"
    assert tab.sockets == 2


async def test_a_token_of_another_consumer_renews_nothing(tab: Tab) -> None:
    await tab.is_given_a_token(SOONER_S)
    await tab.signs_in()
    await expect(tab.card).to_contain_text("Placed")
    await expect(tab.banner).to_contain_text("has ended", timeout=scaled(30) * 1000)
    await tab.is_given_a_token(LATER_S, "customer-0002")
    await tab.renews()

    await expect(tab.banner.get_by_role("alert")).to_contain_text("not a token of")
    await expect(tab.banner.get_by_label("New token")).to_be_focused()


async def test_the_operators_page_asks_for_another_token_when_the_last_is_refused(tab: Tab) -> None:
    async def refuse(route: Route) -> None:
        await route.fulfill(status=401, json={"message": "Unauthorized"})

    await tab.is_given_a_token(LATER_S, "", "staff")
    await tab.signs_in("/operator")
    await expect(tab.page.locator("#session")).to_contain_text("Live")
    await tab.page.route("**/v1/edge", refuse)
    await expect(tab.banner).to_contain_text("has ended")
    await tab.page.unroute("**/v1/edge")
    await tab.renews()

    await expect(tab.banner).to_be_hidden()
    await expect(tab.page.locator("#session")).to_contain_text("Live")
