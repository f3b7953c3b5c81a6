"""Serves the pages for customers, operators and developers, and the JavaScript client: files of this package."""

from collections.abc import Awaitable, Callable
from hashlib import sha256
from pathlib import Path

from fastapi import APIRouter, Request, Response

FOLDER = Path(__file__).parents[1] / "page"
TOP = {"/": "orders.html", "/operator": "operator.html", "/docs": "docs.html", "/statecast.js": "statecast.js"}
"""The files that are not served below /page/."""

MEDIA_TYPES = {".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Cache-Control": "no-cache",
    "Content-Security-Policy": POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


def paths() -> dict[str, str]:
    """Every path that is served, with its file."""
    names = sorted(file.name for file in FOLDER.iterdir() if file.suffix in MEDIA_TYPES)
    return TOP | {f"/page/{name}": name for name in names if name not in TOP.values()}


def pages() -> APIRouter:
    """The routes of all files; the OpenAPI document leaves them out."""
    router = APIRouter()
    for path, name in paths().items():
        router.add_api_route(path, _page(FOLDER / name), methods=["GET", "HEAD"], include_in_schema=False)
    return router


def _page(file: Path) -> Callable[[Request], Awaitable[Response]]:
    """The call that answers with a file, or with 304 while the browser's copy is still valid."""
    content = file.read_bytes()
    headers = {**HEADERS, "ETag": f'"{sha256(content).hexdigest()[:16]}"'}

    async def answer(request: Request) -> Response:
        if request.headers.get("if-none-match") == headers["ETag"]:
            return Response(status_code=304, headers=headers)
        return Response(content, media_type=MEDIA_TYPES[file.suffix], headers=headers)

    return answer
