"""The Chromium of this machine, driven by Playwright."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from playwright.async_api import Browser, async_playwright

from testkit.system_programs import system_program


def chromium_path() -> str:
    """Returns where Chromium is. Without one the test is skipped, but fails where CI is set."""
    return system_program("chromium", "chromium-browser", package="chromium")


@asynccontextmanager
async def chromium() -> AsyncIterator[Browser]:
    """Yields a browser without a window. Its sandbox is off, because that does not start for root."""
    path = chromium_path()
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        await browser.close()
