"""The pages for people: each file is served under the policy, cached by its ETag, and refers only to served files."""

import re

import pytest
from httpx import AsyncClient

from testkit.ws_edge.edge import RunningEdge
from ws_edge.http.app import page_files

PATHS = page_files()
REFERENCES = re.compile(r"""(?:src|href|from)\s?=?\s?["'](/[^"']*)["']""")


@pytest.mark.parametrize("path", PATHS)
async def test_every_file_is_served_to_everybody_under_the_policy(edge: RunningEdge, path: str) -> None:
    async with AsyncClient(base_url=f"http://{edge.address}", verify=False) as client:
        answer = await client.get(path)
        again = await client.get(path, headers={"If-None-Match": answer.headers["ETag"]})
        head = await client.head(path)

    assert answer.status_code == 200
    assert answer.headers["Content-Security-Policy"].startswith("default-src 'none'; script-src 'self';")
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert (again.status_code, again.content) == (304, b"")
    assert (head.status_code, head.content) == (200, b"")


@pytest.mark.parametrize("path", PATHS)
async def test_files_refer_only_to_files_that_are_served_here(alice: AsyncClient, path: str) -> None:
    text = (await alice.get(path)).text

    assert set(REFERENCES.findall(text)) <= {*PATHS, "/openapi.json", "/asyncapi.json"}
    assert "http://" not in text.replace("http://www.w3.org/", "")
    assert "https://" not in text
    assert not re.search(r"innerHTML|style=|\bon[a-z]+=\"|<script>", text)


@pytest.mark.parametrize("path", ["/redoc", "/docs/oauth2-redirect"])
async def test_the_framework_serves_no_pages_with_scripts_of_other_hosts(alice: AsyncClient, path: str) -> None:
    assert (await alice.get(path)).status_code == 404
