"""The page of a domain that nobody here has written, in Chromium, and one that is wrong."""

import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from playwright.async_api import Page, expect

from statecast.odds.v1.market_pb2 import Market
from testkit.chromium import chromium
from testkit.waiting import scaled
from testkit.ws_edge.edge import RunningEdge
from ws_edge.model.states import StoreKey

GUIDE = Path(__file__).parents[2] / "docs" / "start" / "kafka-topic.md"
STORES = """
stores:
  - {name: parcels-by-town, message: statecast.odds.v1.Market, keeps: members, readers: everyone}
"""
SIGNED_IN = (
    """sessionStorage.setItem("statecast.credentials", JSON.stringify({ kind: "key", value: "left to the gateway" }))"""
)


def page_of_the_guide() -> str:
    """Returns the module that the guide lets its reader write."""
    lines = re.search(r"page/page\.js <<'END'\n(.*?)\n    END\n", GUIDE.read_text(), re.DOTALL)
    assert lines is not None, "the guide writes a page"
    return re.sub(r"^    ", "", lines[1], flags=re.MULTILINE)


def write(file: Path, text: str) -> None:
    """Writes a file of the page."""
    file.write_text(text)


def put_parcel(edge: RunningEdge, name: str) -> None:
    """A row in the town of Ghent; its message does not matter to the page."""
    edge.query.put(StoreKey("parcels-by-town", "Ghent", name, name), Market(market_id=name, name=name))


@pytest.fixture
def page_file(tmp_path: Path) -> Path:
    """Where the domain `parcels` has its page."""
    file = tmp_path / "parcels" / "page" / "page.js"
    file.parent.mkdir(parents=True)
    return file


@pytest.fixture
async def edge(page_file: Path) -> AsyncIterator[RunningEdge]:
    """An edge with the domain of a stranger alone."""
    async with RunningEdge(domains=page_file.parents[2], stores=STORES, min_interval_ms=20) as running:
        yield running


@pytest.fixture
async def page(edge: RunningEdge) -> AsyncIterator[Page]:
    """A tab of a customer who is signed in."""
    expect.set_options(timeout=scaled(10) * 1000)
    async with chromium() as browser:
        context = await browser.new_context(base_url=f"http://{edge.address}", extra_http_headers=edge.headers())
        await context.add_init_script(SIGNED_IN)
        yield await context.new_page()


async def test_the_page_of_the_guide_shows_rows_that_come_and_go(
    edge: RunningEdge, page: Page, page_file: Path
) -> None:
    write(page_file, page_of_the_guide())
    write(page_file.with_name("page.css"), "h1 { letter-spacing: 3px; }")
    put_parcel(edge, "parcel-1")
    await page.goto("/#parcels/Ghent")
    await expect(page.get_by_role("heading", name="Parcels in Ghent")).to_have_css("letter-spacing", "3px")
    await expect(page.get_by_role("row").filter(has_text="parcel-1")).to_be_visible()
    put_parcel(edge, "parcel-2")
    await expect(page.get_by_role("row").filter(has_text="parcel-2")).to_be_visible()
    edge.query.delete(StoreKey("parcels-by-town", "Ghent", "parcel-1", "parcel-1"))

    await expect(page.get_by_role("row").filter(has_text="parcel-1")).to_be_hidden()


@pytest.mark.parametrize(
    ("script", "said"),
    [("export const view = {", "The page of parcels cannot be loaded"), ("export const vew = {};", "exports no view")],
)
async def test_a_page_that_is_wrong_is_told_and_the_others_go_on(
    page: Page, page_file: Path, script: str, said: str
) -> None:
    write(page_file, script)
    await page.goto("/")

    await expect(page.get_by_role("alert").filter(has_text=said)).to_be_visible()
    await expect(page.get_by_text("There is nothing for you yet.")).to_be_visible()
