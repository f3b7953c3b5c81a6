"""People in front of the pages: they sign in, read, and take screenshots."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from playwright.async_api import Browser, Locator, Page, expect

from testkit.chromium import chromium
from testkit.waiting import scaled

SCREENSHOTS = Path(__file__).parents[1] / "screenshots"
"""The pictures of the last run; git ignores them."""

TIMEOUT_MS = scaled(30) * 1000


class Person:
    """One tab of a browser. Everything that the page complains about in its console is kept."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.complaints: list[str] = []
        self.sockets = 0
        """How many sockets the page has opened."""
        page.on("websocket", lambda _: self._count_socket())
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("console", lambda said: self.complaints.append(said.text) if said.type == "error" else None)

    async def sign_in(self, path: str, kind: str, value: str, name: str = "") -> None:
        """Opens a page and signs in: with a name where the kind is `Password`."""
        await self.page.goto(path)
        await self.page.get_by_role("radio", name=kind).check()
        if name:
            await self.page.get_by_label("Name").fill(name)
        await self.try_again(value)

    async def try_again(self, value: str) -> None:
        """Fills the secret into the form that is there, and sends it."""
        await self.page.locator("input[type=password]").fill(value)
        await self.page.keyboard.press("Enter")

    async def renew(self, token: str) -> None:
        """Fills another token into the banner that asks for it, and sends it."""
        await self.banner.get_by_label("New token").fill(token)
        await self.banner.get_by_role("button", name="Renew").click()

    @property
    def banner(self) -> Locator:
        """The banner that asks for another token while the page keeps working."""
        return self.page.get_by_role("form", name="Your sign-in")

    def card(self, order_id: str) -> Locator:
        """Returns the card of an order."""
        return self.page.get_by_role("listitem").filter(has_text=order_id)

    async def sees(self, place: Locator, text: str) -> None:
        """Waits until the text is there."""
        await expect(place).to_contain_text(text, timeout=TIMEOUT_MS)

    async def sees_light(self, text: str) -> None:
        """Waits until the page shows this text about its connection."""
        await self.sees(self.page.locator("#session"), text)

    async def picture(self, name: str, *, moving: bool = False, whole: bool = False) -> None:
        """Saves a screenshot: with animations if `moving`; of the `whole` page, or of the part that fits."""
        SCREENSHOTS.mkdir(exist_ok=True)
        path = SCREENSHOTS / f"{name}.png"
        await self.page.screenshot(path=path, animations="allow" if moving else "disabled", full_page=whole)

    async def pictures(self, name: str) -> None:
        """Saves a screenshot in the dark and in the light colour scheme."""
        for scheme in ("dark", "light"):
            await self.page.emulate_media(color_scheme=scheme)
            await self.picture(f"{name}-{scheme}")

    def _count_socket(self) -> None:
        self.sockets += 1


@asynccontextmanager
async def browser_at(address: str) -> AsyncIterator["Visits"]:
    """Yields a browser that resolves pages against the address; it trusts the certificate of the stack."""
    async with chromium() as browser:
        yield Visits(browser, address)


class Visits:
    """Opens tabs that know nothing of each other."""

    def __init__(self, browser: Browser, address: str) -> None:
        self._browser, self._address = browser, address

    async def person(self, **options: Any) -> Person:
        """Returns a tab of its own; the options are those of a browser's context, for example `color_scheme`."""
        context_options = {"viewport": {"width": 1280, "height": 800}} | options
        context = await self._browser.new_context(base_url=self._address, ignore_https_errors=True, **context_options)
        return Person(await context.new_page())
