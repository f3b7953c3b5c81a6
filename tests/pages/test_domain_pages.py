"""The pages of the domains that ship, in Chromium, before a real edge and a scripted query service."""

import re
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from playwright.async_api import Locator, Page, expect

from statecast.bookings.v1.booking_pb2 import Booking
from statecast.odds.v1.market_pb2 import Market, Outcome
from statecast.odds.v1.match_pb2 import Match
from statecast.portfolio.v1.share_holder_pb2 import ShareHolder
from statecast.sales.v1.city_sales_pb2 import CitySales
from statecast.sales.v1.customer_rewards_pb2 import CustomerRewards
from statecast.sales.v1.hourly_sales_pb2 import HourlySales
from statecast.sales.v1.invoice_pb2 import Invoice
from statecast.sales.v1.store_pb2 import Store as Shop
from testkit.chromium import chromium
from testkit.waiting import scaled
from testkit.ws_edge.edge import RunningEdge, until
from ws_edge.model.states import StoreKey

STORES = """
stores:
  - {name: orders-by-customer, message: statecast.orders.v1.Order, keeps: members,
     readers: {field: customer_id, group: true}}
  - {name: bookings-by-customer, message: statecast.bookings.v1.Booking, keeps: members,
     readers: {field: customer_id, group: true}}
  - {name: matches-about-to-start, message: statecast.odds.v1.Match, keeps: members, readers: everyone}
  - {name: odds-by-match, message: statecast.odds.v1.Market, keeps: members, readers: everyone}
  - {name: us-share-holders, message: statecast.portfolio.v1.ShareHolder, keeps: one, readers: staff}
  - {name: stores-by-key, message: statecast.sales.v1.Store, keeps: one, readers: staff}
  - {name: hourly-sales-by-store, message: statecast.sales.v1.HourlySales, keeps: members, readers: staff}
  - {name: invoices-by-store, message: statecast.sales.v1.Invoice, keeps: members, readers: staff}
  - {name: rewards-by-customer, message: statecast.sales.v1.CustomerRewards, keeps: one, readers: staff}
  - {name: sales-by-city, message: statecast.sales.v1.CitySales, keeps: one, readers: staff}
"""
ODDS = "odds-by-match"
CUSTOMER = "customer-0001"


def now() -> datetime:
    """Returns the time as the test runs: one taken at collection would be past by then."""
    return datetime.now(UTC)


def this_hour() -> datetime:
    """Returns the beginning of the hour that the page calls this one."""
    return now().replace(minute=0, second=0, microsecond=0)


SIGNED_IN = (
    """sessionStorage.setItem("statecast.credentials", JSON.stringify({ kind: "key", value: "left to the gateway" }))"""
)

Tabs = Callable[[str, str], AbstractAsyncContextManager[Page]]
"""Opens a tab at an address below `/`, of a consumer: a customer's id, or nothing for staff."""


def text_of(moment: datetime) -> str:
    """Returns the sort value of a time."""
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def put_match(edge: RunningEdge, name: str, minutes: int, sport: str = "football") -> StoreKey:
    """Returns a match that starts in so many minutes."""
    row = Match(match_id=name, sport=sport, home=f"Home of {name}", away="Away")
    starts = now() + timedelta(minutes=minutes)
    row.starts_at.FromDatetime(starts)
    key = StoreKey("matches-about-to-start", "about to start", text_of(starts), name)
    edge.query.put(key, row)
    return key


def put_market(edge: RunningEdge, match: str, name: str, odds: int, *, suspended: bool = False) -> None:
    """A market with two outcomes; the odds are those of the first one."""
    outcomes = [Outcome(name="home", odds_thousandths=odds), Outcome(name="away", odds_thousandths=4000)]
    row = Market(market_id=f"{match} {name}", match_id=match, name=name, outcomes=outcomes, suspended=suspended)
    edge.query.put(StoreKey("odds-by-match", match, name, row.market_id), row)


def put_booking(edge: RunningEdge, name: str, booked: datetime, destination: str = "Bonn") -> None:
    """A booking of the customer."""
    row = Booking(booking_id=name, customer_id=CUSTOMER, origin="Berlin", destination=destination)
    row.booked_at.FromDatetime(booked)
    edge.query.put(StoreKey("bookings-by-customer", CUSTOMER, text_of(booked), name), row)


def put_holder(edge: RunningEdge, client: str, shares: int) -> None:
    """A client with two positions."""
    edge.query.put(StoreKey("us-share-holders", client), ShareHolder(client=client, positions=2, shares=shares))


def put_city(edge: RunningEdge, city: str, cents: int) -> None:
    """The sum of three invoices of a city."""
    edge.query.put(StoreKey("sales-by-city", city), CitySales(city=city, invoices=3, amount_cents=cents))


def put_sales(edge: RunningEdge, cents: int) -> None:
    """The sales of store-01 in this hour."""
    start = this_hour()
    end = start + timedelta(hours=1)
    row = HourlySales(store_id="store-01", invoices=2, amount_cents=cents)
    row.window_start.FromDatetime(start)
    row.window_end.FromDatetime(end)
    edge.query.put(StoreKey("hourly-sales-by-store", "store-01", text_of(start), text_of(end)), row)


@pytest.fixture
async def edge() -> AsyncIterator[RunningEdge]:
    """An edge with the stores of all domains."""
    async with RunningEdge(stores=STORES, min_interval_ms=20, shard_refresh_ms=100) as running:
        yield running


@pytest.fixture
async def tabs(edge: RunningEdge) -> AsyncIterator[Tabs]:
    """Opens tabs of a browser; none may complain in its console."""
    expect.set_options(timeout=scaled(10) * 1000)  # views refresh their lists from time to time
    async with chromium() as browser:

        @asynccontextmanager
        async def tab(address: str, consumer: str = CUSTOMER) -> AsyncIterator[Page]:
            headers = edge.headers(consumer, "customers" if consumer else "staff")
            options: dict[str, Any] = {"base_url": f"http://{edge.address}", "extra_http_headers": headers}
            context = await browser.new_context(timezone_id="UTC", locale="en-GB", reduced_motion="reduce", **options)
            await context.add_init_script(SIGNED_IN)
            page, complaints = await context.new_page(), []
            page.on("pageerror", lambda error: complaints.append(str(error)))
            page.on("console", lambda said: complaints.append(said.text) if said.type == "error" else None)
            await page.goto(f"/{address}")
            yield page
            assert complaints == []
            await context.close()

        yield tab


async def names_of(page: Page) -> list[str]:
    """Returns the links of the navigation."""
    await page.get_by_role("navigation", name="Views").wait_for()
    return await page.get_by_role("navigation", name="Views").get_by_role("link").all_inner_texts()


def price(page: Page, match: str, market: str) -> Locator:
    """Returns the price of the first outcome of a market."""
    card = page.locator(".match").filter(has_text=f"Home of {match}")
    return card.locator(".market").filter(has_text=market).locator(".price").first


async def test_the_navigation_has_what_runs_and_the_consumer_may_see(edge: RunningEdge, tabs: Tabs) -> None:
    async with tabs("", CUSTOMER) as mine, tabs("", "") as theirs:
        assert await names_of(mine) == ["Orders", "Bookings", "Odds"]
        assert await names_of(theirs) == ["Bookings", "Holders", "Odds", "Shops", "Stores", "Operations"]
        await mine.get_by_role("link", name="Bookings").click()
        await expect(mine.get_by_role("heading", name="My bookings")).to_be_visible()
        await expect(mine.get_by_role("link", name="Bookings")).to_have_attribute("aria-current", "page")
        await mine.go_back()
        await expect(mine.get_by_role("heading", name="My orders")).to_be_visible()

    edge.query.stores = {name: store for name, store in edge.query.stores.items() if name.startswith("orders")}
    await until(lambda: ODDS not in edge.parts.live_stores.stores)
    async with tabs("#odds", CUSTOMER) as mine:
        await expect(mine.get_by_role("heading", name="My orders")).to_be_visible(timeout=30_000)


async def test_prices_move_without_moving_anything_else(edge: RunningEdge, tabs: Tabs) -> None:
    put_match(edge, "later", 300)
    soon = put_match(edge, "soon", 5)
    for name in ("match winner", "score a", "score b", "score c", "score d"):
        put_market(edge, "soon", name, 2000)
    async with tabs("#odds", CUSTOMER) as page:
        moving, resting = price(page, "soon", "match winner"), price(page, "soon", "score b")
        await expect(moving).to_contain_text("2.00")
        await expect(page.locator(".match h2").first).to_contain_text("Home of soon")
        await expect(page.locator(".match time").first).to_have_text(re.compile("in . min"))
        places = [await each.bounding_box() for each in (moving, resting)]
        put_market(edge, "soon", "match winner", 12500)
        await expect(moving).to_contain_text("12.50")
        await expect(moving).to_have_attribute("data-move", "up")
        put_market(edge, "soon", "match winner", 1500, suspended=True)
        await expect(moving).to_have_attribute("data-move", "down")
        await expect(page.locator(".market.suspended")).to_contain_text("Suspended")

        assert [await each.bounding_box() for each in (moving, resting)] == places

        await expect(price(page, "soon", "score d")).to_be_hidden()
        await page.get_by_role("button", name="2 more markets").click()
        await expect(price(page, "soon", "score d")).to_be_visible()
        edge.query.delete(soon)
        await expect(page.locator(".match")).to_have_count(1)
        await expect(page.locator(".match")).to_contain_text("Home of later")


async def test_the_board_shows_one_sport_or_all(edge: RunningEdge, tabs: Tabs) -> None:
    put_match(edge, "one", 5, "football")
    put_match(edge, "other", 6, "handball")
    async with tabs("#odds", CUSTOMER) as page:
        await expect(page.locator(".match")).to_have_count(2)
        await page.get_by_role("radio", name="handball").check()
        await expect(page.locator(".match")).to_have_count(1)
        await expect(page.locator(".match")).to_contain_text("Home of other")


async def test_bookings_are_those_within_a_stretch_of_time(edge: RunningEdge, tabs: Tabs) -> None:
    for day in (1, 2, 3):
        put_booking(edge, f"booking-{day}", datetime(2024, 8, day, 12, tzinfo=UTC))
    async with tabs("#bookings", CUSTOMER) as page:
        titles = page.locator(".ticket .parcel")
        await expect(titles).to_have_text(["booking-3", "booking-2", "booking-1"])
        await page.get_by_label("Booked from").fill("2024-08-02T12:00:00")
        await page.get_by_label("Until").fill("2024-08-03T12:00:00")
        await page.keyboard.press("Tab")
        await expect(titles).to_have_text(["booking-2"])
        put_booking(edge, "booking-4", datetime(2024, 8, 2, 13, tzinfo=UTC))
        put_booking(edge, "booking-5", datetime(2024, 8, 3, 13, tzinfo=UTC))
        put_booking(edge, "booking-2", datetime(2024, 8, 2, 12, tzinfo=UTC), "Köln")
        await expect(titles).to_have_text(["booking-4", "booking-2"])
        await expect(page.locator(".ticket").last).to_contain_text("Köln")
        await page.get_by_label("Until").fill("2024-08-01T12:00:00")
        await page.keyboard.press("Tab")
        await expect(page.get_by_text("The time ends before it begins.")).to_be_visible()
        await page.get_by_role("radio", name="Last hour").check()
        await expect(page.get_by_text("No bookings in this time.")).to_be_visible()
        put_booking(edge, "booking-6", datetime.now(UTC))
        await expect(titles).to_have_text(["booking-6"])


async def test_staff_choose_whose_bookings_they_see(edge: RunningEdge, tabs: Tabs) -> None:
    put_booking(edge, "booking-1", now())
    async with tabs("#bookings", "") as page:
        await expect(page.get_by_text("Fill in a customer")).to_be_visible()
        await page.get_by_label("Customer").fill(CUSTOMER)
        await page.keyboard.press("Enter")
        await expect(page.locator(".ticket .parcel")).to_have_text(["booking-1"])


async def test_holders_come_change_and_go_and_one_is_seen_in_detail(edge: RunningEdge, tabs: Tabs) -> None:
    put_holder(edge, "client1", 100)
    put_holder(edge, "client2", 3000)
    async with tabs("#positions", "") as page:
        clients = page.get_by_role("region", name="Clients").locator("tbody th")
        await expect(clients).to_have_text(["client2", "client1"])
        await clients.last.get_by_role("link").click()
        detail = page.locator(".detail")
        await expect(detail).to_contain_text("100")
        await expect(detail).to_contain_text("No change since you look.")
        put_holder(edge, "client1", 4500)
        await expect(detail).to_contain_text("+4,400 shares")
        await expect(clients).to_have_text(["client1", "client2"])
        put_holder(edge, "client4", 0)
        put_holder(edge, "client3", 9000)
        await expect(clients).to_have_text(["client3", "client1", "client2", "client4"])
        await expect(page.get_by_role("main")).to_contain_text("16,500")
        edge.query.delete(StoreKey("us-share-holders", "client2"))
        await expect(clients).to_have_text(["client3", "client1", "client4"])
        await detail.get_by_role("link", name="Close").click()
        await expect(detail).to_be_hidden()


async def test_a_shop_is_seen_with_its_hours_invoices_and_rewards_and_the_cities(edge: RunningEdge, tabs: Tabs) -> None:
    for number, name in ((1, "Mumbai Plaza"), (2, "Pune Yard")):
        edge.query.put(StoreKey("stores-by-key", f"store-0{number}"), Shop(store_id=f"store-0{number}", name=name))
    invoice = Invoice(invoice_number="invoice-1", store_id="store-01", total_amount_cents=125_000, currency="INR")
    edge.query.put(StoreKey("invoices-by-store", "store-01", text_of(now()), "invoice-1"), invoice)
    card = "4000000000004711"
    edge.query.put(StoreKey("rewards-by-customer", card), CustomerRewards(customer_card_no=card, points=1234))
    put_sales(edge, 100_000)
    put_city(edge, "Mumbai", 125_000)
    put_city(edge, "Pune", 90_000)
    async with tabs("#invoices", "") as page:
        chart = page.get_by_role("img", name="Sales of the last 24 hours: 1,000.00 in all")
        await expect(chart).to_be_visible()
        await expect(page.get_by_role("region", name="Invoices")).to_contain_text("₹1,250.00")
        await expect(page.get_by_role("region", name="Rewards")).to_contain_text("•••• 4711")
        await expect(page.get_by_role("region", name="Rewards").locator("tbody td")).to_have_text(["0", "1,234"])
        cities = page.get_by_role("region", name="Cities").get_by_role("row")
        await expect(cities).to_have_text(["CityInvoicesAmount", "Mumbai31,250.00", "Pune3900.00"])
        put_city(edge, "Pune", 1_000_000)
        await expect(cities).to_have_text(["CityInvoicesAmount", "Pune310,000.00", "Mumbai31,250.00"])
        edge.query.delete(StoreKey("sales-by-city", "Mumbai"))
        await expect(cities).to_have_count(2)
        put_sales(edge, 150_000)
        await expect(page.get_by_role("img", name="1,500.00 in this hour")).to_be_visible()
        await page.get_by_text("As a table").click()
        await expect(page.get_by_role("region", name="Sales by the hour").get_by_role("row")).to_have_count(25)
        await page.get_by_label("Shop").select_option("store-02")
        await expect(page.get_by_text("No invoices yet.")).to_be_visible()
        await expect(page.get_by_role("img", name=" 0.00 in all")).to_be_visible()


async def test_every_store_can_be_seen_by_group_or_whole(edge: RunningEdge, tabs: Tabs) -> None:
    put_market(edge, "match-1", "goals", 2000)
    put_market(edge, "match-2", "goals", 3000)
    put_holder(edge, "client1", 100)
    async with tabs("#stores/odds-by-match", "") as page:
        await expect(page.get_by_text("read by everyone")).to_be_visible()
        await page.get_by_role("link", name="match-2").click()
        rows = page.get_by_role("region", name="odds-by-match").locator("tbody tr")
        await expect(rows).to_have_count(1)
        await expect(rows).to_contain_text("match-2 goals")
        put_market(edge, "match-2", "corners", 3000)
        await expect(rows).to_have_count(2)
        await page.get_by_label("Store").select_option("us-share-holders")
        line = page.get_by_role("region", name="us-share-holders").locator("tbody tr")
        await expect(line).to_contain_text("client1")
        put_holder(edge, "client1", 777)
        await expect(line).to_contain_text("777")
        await page.get_by_label("Store").select_option("bookings-by-customer")
        await expect(page.get_by_text("read by whom customer_id names, and by staff")).to_be_visible()
