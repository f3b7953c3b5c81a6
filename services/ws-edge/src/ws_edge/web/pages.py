"""Serves the pages of customers, operators and developers, and the JavaScript client: files of this package."""

from hashlib import sha256
from importlib.resources import files

from fastapi import APIRouter, Request, Response

PLACES = {
    "/": "orders.html",
    "/operator": "operator.html",
    "/docs": "docs.html",
    "/statecast.js": "statecast.js",
    "/page/style.css": "style.css",
    "/page/icon.svg": "icon.svg",
    "/page/credentials.js": "credentials.js",
    "/page/sign-in.js": "sign-in.js",
    "/page/renewal.js": "renewal.js",
    "/page/elements.js": "elements.js",
    "/page/orders.js": "orders.js",
    "/page/order-card.js": "order-card.js",
    "/page/operator.js": "operator.js",
    "/page/rates.js": "rates.js",
    "/page/chart.js": "chart.js",
    "/page/docs.js": "docs.js",
}
"""Every address, with the file that answers."""

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


class Page:
    """One file, in memory. A browser that has it is answered with 304."""

    def __init__(self, name: str) -> None:
        self._content = files("ws_edge").joinpath("page", name).read_bytes()
        self._media_type = MEDIA_TYPES[name[name.rindex(".") :]]
        self._headers = {**HEADERS, "ETag": f'"{sha256(self._content).hexdigest()[:16]}"'}

    async def answer(self, request: Request) -> Response:
        """The file, or that the browser's copy still holds."""
        if request.headers.get("if-none-match") == self._headers["ETag"]:
            return Response(status_code=304, headers=self._headers)
        return Response(self._content, media_type=self._media_type, headers=self._headers)


def pages() -> APIRouter:
    """The routes of all files. They are no part of the interface that OpenAPI describes."""
    router = APIRouter()
    for place, name in PLACES.items():
        router.add_api_route(place, Page(name).answer, methods=["GET", "HEAD"], include_in_schema=False)
    return router
