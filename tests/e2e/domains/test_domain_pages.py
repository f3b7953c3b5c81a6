"""The views of the page at `/` of all domains but the orders, in a real browser, through the gateway."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from drivers.gateway_client import client_of, gateway_of
from drivers.pages import TIMEOUT_MS, Person, Visits, browser_at
from playwright.async_api import Locator, expect

from local_stack.running_stack import RunningStack
from testkit.waiting import scaled

GROUP = "bookings-by-customer", "customer-0001"
PHONE = {"viewport": {"width": 390, "height": 844}, "device_scale_factor": 2, "has_touch": True}


@pytest.fixture
async def visits(domains_stack: RunningStack) -> AsyncIterator[Visits]:
    """A browser at the gateway."""
    async with browser_at(gateway_of(domains_stack).https) as opened:
        yield opened


async def signed_in(visits: Visits, address: str, key: str, **options: object) -> Person:
    """Returns a signed-in visitor who sees a view live."""
    person = await visits.person(**options)
    await person.sign_in(address, "API key", key)
    await person.sees_light("Live")
    return person


async def appears(place: Locator) -> None:
    """Waits until there is at least one of these."""
    await expect(place.first).to_be_visible(timeout=TIMEOUT_MS)


async def test_everybody_sees_prices_move_on_the_odds_board(visits: Visits) -> None:
    alice = await signed_in(visits, "/#odds", "alice-demo-key")
    await appears(alice.page.locator(".match .price"))
    await appears(alice.page.locator(".price[data-move]"))
    await alice.pictures("odds")
    phone = await signed_in(visits, "/#odds", "alice-demo-key", **PHONE)
    await appears(phone.page.locator(".match .price"))
    await phone.picture("odds-phone")

    assert await phone.page.evaluate("document.documentElement.scrollWidth") == 390
    assert await alice.page.get_by_role("navigation").get_by_role("link").all_inner_texts() == ["Bookings", "Odds"]
    assert alice.complaints + phone.complaints == []


async def test_a_customer_sees_the_bookings_within_a_stretch_of_time(
    visits: Visits, domains_stack: RunningStack
) -> None:
    phone = client_of(domains_stack, "alice")
    alice = await signed_in(visits, "/#bookings", "alice-demo-key", timezone_id="UTC")
    await appears(alice.page.locator(".ticket"))
    newest = (await alice.page.locator(".ticket time").nth(1).get_attribute("datetime") or "")[:19]
    await alice.page.get_by_label("Booked from").fill("2024-01-01T00:00:00")
    await alice.page.get_by_label("Until").fill(newest)
    await alice.page.keyboard.press("Tab")

    async def shows_what_rest_answers() -> bool:
        shown = await alice.page.locator(".ticket .parcel").all_inner_texts()
        answer = await asyncio.to_thread(phone.rows, *GROUP, sort_to=f"{newest}.000000Z", reverse="true", limit=200)
        return bool(shown) and shown == [row["key"] for row in answer.json()["rows"]]

    async with asyncio.timeout(scaled(30)):
        while not await shows_what_rest_answers():
            await alice.page.wait_for_timeout(100)
    await alice.page.get_by_role("radio", name="Last day").check()
    await appears(alice.page.locator(".ticket"))
    await alice.pictures("bookings")

    assert alice.complaints == []


async def test_staff_see_holders_shops_and_any_store(visits: Visits) -> None:
    operator = await signed_in(visits, "/#positions", "operator-demo-key")
    page = operator.page
    client = page.get_by_role("region", name="Clients").get_by_role("link").first
    await client.click(timeout=TIMEOUT_MS)
    await appears(page.locator(".detail .figure"))
    await operator.pictures("holders")

    await page.get_by_role("link", name="Shops").click()
    await appears(page.get_by_role("img", name="Sales of the last 24 hours"))
    for region in ("Invoices", "Rewards", "Cities"):
        await appears(page.get_by_role("region", name=region).locator("tbody tr"))
    await operator.pictures("shop")

    await page.get_by_role("link", name="Stores").click()
    await page.get_by_label("Store").select_option("odds-by-match")
    await page.get_by_role("link", name="match-").first.click(timeout=TIMEOUT_MS)
    await appears(page.get_by_role("region", name="odds-by-match").locator("tbody tr"))
    await operator.pictures("stores")

    assert operator.complaints == []
