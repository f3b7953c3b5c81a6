"""Serves files to browsers: the edge's own pages, the JavaScript client, and the pages of domains."""

import re
from collections.abc import Callable
from functools import partial
from hashlib import sha256
from importlib.resources import files
from pathlib import Path

from fastapi import APIRouter, HTTPException, Request, Response
from fastapi.responses import JSONResponse

SHIPPED = Path(__file__).parents[1] / "page"
TOP = {
    "/": SHIPPED / "home.html",
    "/operator": SHIPPED / "operator.html",
    "/docs": SHIPPED / "docs.html",
    "/statecast.js": Path(str(files("statecast_client"))) / "statecast.js",
}
"""The files that are served at paths of their own; all others are served below /page/."""
SCRIPT, STYLE = "page.js", "page.css"
"""The files in the directory `page` of a domain that the page at `/` loads."""

MEDIA_TYPES = {
    ".css": "text/css",
    ".html": "text/html",
    ".js": "text/javascript",
    ".png": "image/png",
    ".svg": "image/svg+xml",
}
NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]*")
HEADERS = {
    "Cache-Control": "no-cache",
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


class Pages:
    """Reads each file when it is asked for, so that a domain's page may come while the edge runs."""

    def __init__(self, domains: Path | None) -> None:
        """`domains` is a directory with one for each domain; None serves no pages of domains."""
        self._domains = domains

    def router(self) -> APIRouter:
        """Returns the calls; they run in threads, because they read files."""
        calls: dict[str, Callable[..., Response]] = {
            **{path: partial(_answer, file) for path, file in TOP.items()},
            "/page/domains.json": self._list,
            "/page/{name}": _shipped,
            "/page/{domain}/{name}": self._of_domain,
        }
        router = APIRouter(include_in_schema=False)
        for path, call in calls.items():
            router.add_api_route(path, call, methods=["GET", "HEAD"])
        return router

    def _list(self) -> Response:
        files = {domain: _names(page) for domain, page in self._directories().items()}
        pages = [
            {
                "domain": domain,
                "script": f"/page/{domain}/{SCRIPT}",
                "style": f"/page/{domain}/{STYLE}" if STYLE in names else None,
            }
            for domain, names in files.items()
            if SCRIPT in names
        ]
        return JSONResponse({"pages": pages}, headers=HEADERS)

    def _of_domain(self, domain: str, name: str, request: Request) -> Response:
        page = self._directories().get(domain)
        if page is None or name not in _names(page):
            raise HTTPException(404, "there is no such page")
        return _answer(page / name, request)

    def _directories(self) -> dict[str, Path]:
        """Returns the directories `page` of domains, by the names of these."""
        domains = sorted(self._domains.iterdir()) if self._domains else []
        return {each.name: each / "page" for each in domains if NAME.fullmatch(each.name) and (each / "page").is_dir()}


def _names(directory: Path) -> list[str]:
    """Returns the files in a directory that may be served: of a known type, and none that a link leads out to.

    A mounted ConfigMap has links to files in a hidden directory beside them.
    """
    root = directory.resolve()
    files = [file for file in sorted(directory.iterdir()) if file.suffix in MEDIA_TYPES and file.is_file()]
    return [file.name for file in files if NAME.fullmatch(file.name) and file.resolve().is_relative_to(root)]


def _shipped(name: str, request: Request) -> Response:
    if SHIPPED / name in TOP.values() or name not in _names(SHIPPED):
        raise HTTPException(404, "there is no such page")
    return _answer(SHIPPED / name, request)


def _answer(file: Path, request: Request) -> Response:
    """Answers with a file, or with 304 while the browser's copy is still valid."""
    content = file.read_bytes()
    headers = {**HEADERS, "ETag": f'"{sha256(content).hexdigest()[:16]}"'}
    if request.headers.get("if-none-match") == headers["ETag"]:
        return Response(status_code=304, headers=headers)
    return Response(content, media_type=MEDIA_TYPES[file.suffix], headers=headers)
