"""Pages: each file is served under the policy, cached by its ETag, and refers only to served files; others are not."""

import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from httpx import AsyncClient

from testkit.repository_files import DOMAINS
from testkit.ws_edge.edge import RunningEdge
from ws_edge.rest.pages import MEDIA_TYPES, SHIPPED, TOP

OWN = [f"/page/{file.name}" for file in SHIPPED.iterdir() if file not in TOP.values()]
OF_DOMAINS = [f"/page/{file.parts[-3]}/{file.name}" for file in DOMAINS.glob("*/page/*") if file.suffix in MEDIA_TYPES]
PATHS = sorted([*TOP, *OWN, *OF_DOMAINS])
REFERENCES = re.compile(r"""(?:src|href|from)\s?=?\s?["'](\.?/[^"']*)["']""")


@pytest.fixture
def domains(tmp_path: Path) -> Path:
    """A directory with the domain of a stranger."""
    directory = tmp_path / "domains"
    page = directory / "parcels" / "page"
    page.mkdir(parents=True)
    (page / "page.js").write_text("export const view = {};")
    (page / "notes.txt").write_text("not for browsers")
    (page / ".hidden.js").write_text("not for browsers")
    (directory / "parcels" / "domain.yaml").write_text("topics: []")
    (directory / "parcels" / "secret.js").write_text("beside the page")
    (page / "linked.js").symlink_to(directory / "parcels" / "secret.js")
    return directory


@pytest.fixture
async def stranger(domains: Path) -> AsyncIterator[AsyncClient]:
    """Calls to an edge with that domain."""
    async with (
        RunningEdge(domains=domains) as edge,
        edge.client() as client,
    ):
        yield client


@pytest.mark.parametrize("path", [*PATHS, "/page/domains.json"])
async def test_every_file_is_served_to_everybody_under_the_policy(edge: RunningEdge, path: str) -> None:
    async with edge.client(headers={}) as client:
        answer = await client.get(path)
        again = await client.get(path, headers={"If-None-Match": answer.headers.get("ETag", "")})
        head = await client.head(path)

    assert answer.status_code == 200
    assert answer.headers["Cache-Control"] == "no-cache"
    assert answer.headers["Content-Security-Policy"].startswith("default-src 'none'; script-src 'self';")
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert (head.status_code, head.content) == (200, b"")
    if path in PATHS:
        assert (again.status_code, again.content) == (304, b"")


@pytest.mark.parametrize("path", PATHS)
async def test_files_refer_only_to_files_that_are_served_here(alice: AsyncClient, path: str) -> None:
    text = (await alice.get(path)).text
    beside = path.rpartition("/")[0]
    references = {reference.replace("./", f"{beside}/", 1) for reference in REFERENCES.findall(text)}

    assert references <= {*PATHS, "/openapi.json", "/asyncapi.json"}
    assert "http://" not in text.replace("http://www.w3.org/", "")
    assert "https://" not in text
    assert not re.search(r"innerHTML|style=|\bon[a-z]+=\"|<script>", text)


@pytest.mark.parametrize("path", ["/redoc", "/docs/oauth2-redirect"])
async def test_the_framework_serves_no_pages_with_scripts_of_other_hosts(alice: AsyncClient, path: str) -> None:
    assert (await alice.get(path)).status_code == 404


async def test_the_page_of_a_strangers_domain_is_listed_and_served_as_it_changes(
    stranger: AsyncClient, domains: Path
) -> None:
    page = {"domain": "parcels", "script": "/page/parcels/page.js", "style": None}
    first = (await stranger.get("/page/domains.json")).json()
    script = await stranger.get("/page/parcels/page.js")
    (domains / "parcels" / "page" / "page.css").write_text(".parcel { color: red; }")
    (domains / "parcels" / "page" / "page.js").write_text("export const view = { label: 'Parcels' };")
    newer = await stranger.get("/page/parcels/page.js", headers={"If-None-Match": script.headers["ETag"]})

    assert first == {"pages": [page]}
    assert (script.text, script.headers["Content-Type"]) == (
        "export const view = {};",
        "text/javascript; charset=utf-8",
    )
    assert (await stranger.get("/page/domains.json")).json() == {"pages": [page | {"style": "/page/parcels/page.css"}]}
    assert (newer.status_code, newer.text) == (200, "export const view = { label: 'Parcels' };")


@pytest.mark.parametrize(
    "path",
    [
        "/page/parcels/missing.js",
        "/page/parcels/notes.txt",
        "/page/parcels/.hidden.js",
        "/page/parcels/linked.js",
        "/page/parcels/../domain.yaml",
        "/page/parcels/%2e%2e/secret.js",
        "/page/parcels/..%2fsecret.js",
        "/page/parcels/..%5csecret.js",
        "/page/../parcels/page.js",
        "/page/%2e%2e/page.js",
        "/page//etc/passwd",
        "/page/none/page.js",
        "/page/statecast.js",
    ],
)
async def test_nothing_beside_the_files_of_a_page_is_served(stranger: AsyncClient, path: str) -> None:
    answer = await stranger.get(path)

    assert answer.status_code == 404
    assert answer.json()["error"]["code"] == "not_found"


async def test_an_edge_without_domains_has_its_own_pages_alone(domains: Path) -> None:
    async with (
        RunningEdge(domains=None) as edge,
        edge.client() as client,
    ):
        assert (await client.get("/page/domains.json")).json() == {"pages": []}
        assert (await client.get("/page/parcels/page.js")).status_code == 404
        assert (await client.get("/")).status_code == 200


async def test_files_that_kubernetes_mounts_by_links_are_served(stranger: AsyncClient, domains: Path) -> None:
    mounted = domains / "mounted" / "page"
    (mounted / "..2026").mkdir(parents=True)
    (mounted / "..2026" / "page.js").write_text("export const view = null;")
    (mounted / "..data").symlink_to("..2026")
    (mounted / "page.js").symlink_to("..data/page.js")

    assert (await stranger.get("/page/mounted/page.js")).text == "export const view = null;"
