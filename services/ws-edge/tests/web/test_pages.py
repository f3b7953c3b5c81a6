"""The pages for people: every file is served, safe by policy, whole by its references, and cached by its ETag."""

import re

import pytest
from httpx import AsyncClient

from ws_edge.testing.edge import RunningEdge
from ws_edge.web.pages import PLACES

REFERENCES = re.compile(r"""(?:src|href|from)\s?=?\s?["'](/[^"']*)["']""")


@pytest.mark.parametrize("place", PLACES)
async def test_every_file_is_served_to_everybody_under_the_policy(edge: RunningEdge, place: str) -> None:
    async with AsyncClient(base_url=f"http://{edge.address}", verify=False) as stranger:
        answer = await stranger.get(place)
        again = await stranger.get(place, headers={"If-None-Match": answer.headers["ETag"]})
        head = await stranger.head(place)

    assert answer.status_code == 200
    assert answer.headers["Content-Security-Policy"].startswith("default-src 'none'; script-src 'self';")
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert (again.status_code, again.content) == (304, b"")
    assert (head.status_code, head.content) == (200, b"")


@pytest.mark.parametrize("place", PLACES)
async def test_what_a_file_refers_to_is_served_and_nothing_is_fetched_from_elsewhere(
    alice: AsyncClient, place: str
) -> None:
    text = (await alice.get(place)).text

    assert set(REFERENCES.findall(text)) <= {*PLACES, "/openapi.json", "/asyncapi.json"}
    assert "http://" not in text.replace("http://www.w3.org/", "")
    assert "https://" not in text
    assert not re.search(r"innerHTML|style=|\bon[a-z]+=\"|<script>", text)


@pytest.mark.parametrize("place", ["/redoc", "/docs/oauth2-redirect"])
async def test_the_framework_serves_no_pages_with_scripts_of_other_hosts(alice: AsyncClient, place: str) -> None:
    assert (await alice.get(place)).status_code == 404
