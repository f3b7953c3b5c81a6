"""The Chromium of this machine, driven by Playwright."""

import os
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from playwright.async_api import Browser, async_playwright


def chromium_path() -> str:
    """Where Chromium is. Without one the test is skipped, but fails where CI is set: there it must not be missing."""
    path = shutil.which("chromium") or shutil.which("chromium-browser")
    if path is None:
        missing = "there is no chromium: install the package chromium"
        if os.environ.get("CI") == "true":
            pytest.fail(missing)
        pytest.skip(missing)
    return path


@asynccontextmanager
async def chromium() -> AsyncIterator[Browser]:
    """A browser without a window. Its sandbox is off, because that does not start for root."""
    path = chromium_path()
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        await browser.close()
