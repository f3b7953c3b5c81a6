"""The pages compute and show their content, in Chromium, before a real edge with a scripted query service."""

from collections.abc import AsyncIterator
from typing import Any

import grpc
import pytest
from playwright.async_api import Page, expect

from statecast.orders.v1.order_pb2 import Order, OrderStatus
from testkit.chromium import chromium
from testkit.ws_edge.edge import RunningEdge
from ws_edge.model.states import StoreKey

MEMBER = StoreKey("orders-by-customer", "customer-0001", "2024-08-28T12:34:56.123456Z", "order-1")


@pytest.fixture
async def page(edge: RunningEdge) -> AsyncIterator[Page]:
    """A tab at the edge. Its browser sends the headers that the gateway would send for customer-0001."""
    async with chromium() as browser:
        context = await browser.new_context(base_url=f"http://{edge.address}", extra_http_headers=edge.headers())
        yield await context.new_page()


def put(edge: RunningEdge, order_id: str, status: "OrderStatus.ValueType" = OrderStatus.ORDER_STATUS_PLACED) -> None:
    row = Order(order_id=order_id, customer_id="customer-0001", status=status, currency="EUR", total_cents=1250)
    edge.query.put(MEMBER._replace(member=order_id), row)


async def sign_in(page: Page, address: str = "/") -> None:
    await page.goto(address)
    await page.get_by_label("API key").last.fill("any: the edge leaves keys to the gateway")
    await page.keyboard.press("Enter")


async def computed(page: Page, module: str, expression: str) -> Any:
    """Returns the value of an expression, in which `it` has the exports of the module."""
    await page.goto("/operator")
    return await page.evaluate(f"import('/page/{module}').then((it) => {expression})")


@pytest.mark.parametrize(
    ("counts", "share", "expected"),
    [("[0, 0, 0]", 0.5, None), ("[4, 0, 0]", 0.5, 0.5), ("[0, 4, 0]", 0.25, 1.25), ("[1, 0, 9]", 0.99, 2)],
)
async def test_quantiles_are_read_off_a_histogram(
    page: Page, counts: str, share: float, expected: float | None
) -> None:
    assert await computed(page, "rates.js", f"it.quantile([1, 2], {counts}, {share})") == expected


async def test_rates_are_what_an_edge_has_done_between_two_reports(page: Page) -> None:
    report = "{ instance: 'edge-1', uptime_s: %s, totals: { frames_sent: %s }, ages: { counts: [%s] } }"
    steps = [report % (10, 100, 5), report % (12, 150, 8), report % (1, 3, 1)]
    takes = ", ".join(f"edges.take({step}, {at})" for at, step in enumerate(steps))
    script = f"((edges) => [[{takes}], edges.list()[0].rates])(new it.Edges())"

    assert await computed(page, "rates.js", script) == [[None, [3], None], None], (
        "an edge that has restarted begins anew"
    )
    takes = ", ".join(f"edges.take({step}, 0)" for step in steps[:2])
    script = f"((edges) => [[{takes}], edges.list()[0].rates])(new it.Edges())"
    assert await computed(page, "rates.js", script) == [[None, [3]], {"frames_sent": 25}]


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("it.age(0, 500)", "now"),
        ("it.age(0, 59_000)", "59 s"),
        ("it.age(0, 7_200_000)", "2 h"),
        ("it.span(85.4)", "85 ms"),
        ("it.span(1000)", "1 s"),
        ("it.span(1250)", "1.3 s"),
        ("it.span(90_000)", "2 min"),
    ],
)
async def test_times_are_formatted_for_people(page: Page, expression: str, expected: str) -> None:
    assert await computed(page, "elements.js", expression) == expected


async def test_an_order_appears_changes_and_disappears(edge: RunningEdge, page: Page) -> None:
    put(edge, "order-1")
    await sign_in(page)
    card = page.get_by_role("listitem").filter(has_text="order-1")
    await expect(card).to_contain_text("Placed")
    await expect(card).to_contain_text("€12.50")
    put(edge, "order-1", OrderStatus.ORDER_STATUS_CANCELLED)
    await expect(card).to_contain_text("Cancelled")
    await expect(page.get_by_role("status")).to_have_text("order-1 is now Cancelled")
    edge.query.delete(MEMBER)

    await expect(card).to_be_hidden()
    await expect(page.get_by_text("No orders yet")).to_be_visible()


async def test_the_newest_order_comes_first(edge: RunningEdge, page: Page) -> None:
    for day, order_id in ((1, "order-1"), (3, "order-3"), (2, "order-2")):
        row = Order(order_id=order_id, customer_id="customer-0001")
        row.placed_at.FromSeconds(day)
        edge.query.put(MEMBER._replace(member=order_id), row)
    await sign_in(page)

    await expect(page.get_by_role("heading", level=2)).to_have_text(["order-3", "order-2", "order-1"])


async def test_an_order_that_changes_its_owner_disappears(edge: RunningEdge, page: Page) -> None:
    put(edge, "order-1")
    await sign_in(page)
    card = page.get_by_role("listitem").filter(has_text="order-1")
    await expect(card).to_contain_text("Placed")
    edge.query.put(MEMBER, Order(order_id="order-1", customer_id="customer-0002"))

    await expect(card).to_be_hidden()


async def test_without_orders_the_page_says_so_until_the_first_one_comes(edge: RunningEdge, page: Page) -> None:
    await sign_in(page)
    await expect(page.get_by_text("No orders yet")).to_be_visible()
    put(edge, "order-1")

    await expect(page.get_by_role("listitem").filter(has_text="order-1")).to_be_visible()
    await expect(page.get_by_text("No orders yet")).to_be_hidden()


async def test_while_the_query_service_is_down_the_page_says_so_and_goes_on_when_it_is_back() -> None:
    async with RunningEdge(revocation_timeout_ms=100) as edge, chromium() as browser:
        context = await browser.new_context(base_url=f"http://{edge.address}", extra_http_headers=edge.headers())
        page = await context.new_page()
        put(edge, "order-1")
        edge.query.failing = grpc.StatusCode.UNAVAILABLE
        await sign_in(page)
        await expect(page.get_by_role("alert")).to_contain_text("cannot be looked up now", timeout=30_000)
        edge.query.failing = None

        await expect(page.get_by_role("listitem").filter(has_text="order-1")).to_be_visible(timeout=30_000)
        # The next ping says that the edge sees again.
        await expect(page.get_by_role("alert")).to_be_hidden(timeout=30_000)


async def test_the_developers_page_shows_every_call_socket_and_document(edge: RunningEdge, page: Page) -> None:
    complaints: list[str] = []
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("console", lambda said: complaints.append(said.text) if said.type == "error" else None)
    addresses: list[str] = []
    page.on("request", lambda request: addresses.append(request.url))
    await page.goto("/docs")
    await page.get_by_role("heading", name="Interface").wait_for()
    described = await page.evaluate("""async () => {
      const [calls, sockets] = await Promise.all(
        ["/openapi.json", "/asyncapi.json"].map(async (place) => (await fetch(place)).json()));
      return [
        ...Object.entries(calls.paths).flatMap(([path, item]) =>
          Object.keys(item).map((method) => `${method.toUpperCase()} ${path}`)),
        ...Object.values(sockets.channels).map((channel) => channel.address),
        ...Object.keys({ ...calls.components.schemas, ...sockets.components.schemas }),
      ];
    }""")
    shown = await page.evaluate("[...document.querySelectorAll('details')].map((each) => each.id)")
    dangling = await page.evaluate(
        "[...document.querySelectorAll('main a')].filter((each) => !document.getElementById(each.hash.slice(1))).length"
    )

    assert sorted(shown) == sorted(described)
    assert (dangling, complaints) == (0, [])
    assert all(address.startswith(f"http://{edge.address}/") for address in addresses)


async def test_a_link_to_a_document_opens_it(page: Page) -> None:
    await page.goto("/docs#statecast.push.v2.ErrorBody")
    await expect(page.locator("details[open]")).to_have_count(1)
    await page.locator("details[open]").get_by_role("link", name="Problem").click()
    problem = page.locator("details[id='statecast.push.v2.Problem']")

    await expect(problem).to_contain_text("A stable word for programs")
    await expect(problem).to_have_attribute("open", "")


async def test_a_group_of_any_store_is_a_table_that_changes(edge: RunningEdge, page: Page) -> None:
    put(edge, "order-1")
    await sign_in(page, "/page/watch.html?store=orders-by-customer&group=customer-0001")
    line = page.get_by_role("row").filter(has_text="order-1")
    await expect(line).to_contain_text("ORDER_STATUS_PLACED")
    await expect(line).to_contain_text("1250")
    put(edge, "order-1", OrderStatus.ORDER_STATUS_SHIPPED)
    await expect(line).to_contain_text("ORDER_STATUS_SHIPPED")
    edge.query.delete(MEMBER)

    await expect(line).to_be_hidden()
    await expect(page.get_by_text("No rows yet")).to_be_visible()


async def test_a_key_of_any_store_is_a_line_that_changes(edge: RunningEdge, page: Page) -> None:
    place = StoreKey("orders-by-key", "order-1")
    edge.query.put(place, Order(order_id="order-1", customer_id="customer-0001", currency="EUR"))
    await sign_in(page, "/page/watch.html?store=orders-by-key&key=order-1")
    await expect(page.get_by_role("row").filter(has_text="EUR")).to_be_visible()
    edge.query.delete(place)

    await expect(page.get_by_text("No rows yet")).to_be_visible()


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("/page/watch.html", "This page shows what its address names"),
        ("/page/watch.html?store=no-such&group=a", "there is no store"),
        ("/page/watch.html?store=orders-by-customer&group=customer-0002", "customer-0002"),
    ],
)
async def test_what_cannot_be_watched_is_said(edge: RunningEdge, page: Page, address: str, said: str) -> None:
    await page.goto(address)
    if "?" in address:
        await sign_in(page, address)

    await expect(page.get_by_text(said).last).to_be_visible()
